"""A service over HTTP whose users start runs, decide what they ask, and read results: uvicorn service:app."""

import json
import os
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse

from backstay import ApprovalRequest, BackstayError, Result, Status, connect

ENV = dict(os.environ)  # noqa: TID251 - a separate program, configured by its environment
CODES = {"TaskInvalid": 422, "DecisionInvalid": 422, "NotVerified": 403, "RunNotFound": 404, "Unreachable": 503}


async def person(authorization: Annotated[str, Header()] = "") -> str:  # put your own log-in here
    if authorization not in (people := json.loads(ENV["SERVICE_PEOPLE"])):
        raise HTTPException(401, "Authorization: unknown; log in first")
    return people[authorization]


async def connected(app: FastAPI) -> Any:  # with the approver key, what people do here is signed in their names
    queue, key = ENV.get("BACKSTAY_TASK_QUEUE", "backstay"), ENV.get("BACKSTAY_APPROVER_KEY")
    async with connect(approver_key=key, task_queue=queue) as app.state.backstay:
        yield


app = FastAPI(lifespan=asynccontextmanager(connected))
Person = Annotated[str, Depends(person)]


@app.exception_handler(BackstayError)
async def refused(_: Request, error: BackstayError) -> JSONResponse:  # the message names field, value and fix
    return JSONResponse({"detail": str(error)}, CODES.get(type(error).__name__, 409))


@app.post("/runs", status_code=201)
async def start(by: Person, task: dict[str, Any]) -> dict[str, str]:
    return {"id": (await app.state.backstay.start({**task, "user_id": by, "by": by, "proof": None})).id}


@app.get("/runs/{run}")
async def status(_: Person, run: str) -> Status:
    return await app.state.backstay.run(run).status()


@app.get("/runs/{run}/pending")
async def pending(_: Person, run: str) -> list[ApprovalRequest]:
    return await app.state.backstay.run(run).pending()


@app.post("/runs/{run}/decide")
async def decide(by: Person, run: str, approval: dict[str, Any]) -> dict[str, Any]:
    return await app.state.backstay.run(run).decide({**approval, "by": by, "proof": None})


@app.get("/runs/{run}/result")
async def result(_: Person, run: str) -> Result | None:  # null while the run is open
    return None if await (of := app.state.backstay.run(run)).is_open() else await of.result()
