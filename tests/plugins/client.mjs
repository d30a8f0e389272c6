// A client on the TypeScript SDK: lists the tools of a stdio server, calls one, and prints what it saw as JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
const { tools } = await client.listTools();
const progress = [];
const name = "demo__click_button";
const options = { onprogress: ({ message }) => progress.push(message) };
const called = await client.callTool({ name, arguments: { button_text: "Pay", row: 3 } }, undefined, options);
const failed = await client.callTool({ name: "demo__fail", arguments: {} });
const tool = tools.find((each) => each.name === name);
console.log(JSON.stringify({ tools: tools.map((each) => each.name).sort(), schema: tool.inputSchema, called, failed, progress }));
await client.close();
