"""What Slack demands of blocks and modals, and what a person's client makes of their inputs."""

import secrets
from copy import deepcopy

MOST_BLOCKS = {"message": 50, "modal": 100, "home": 100}
TEXT = 3000
HEADER = 150
BUTTON = 75
VALUE = 2000
OPTION = 75
OPTION_VALUE = 150
TITLE = 24
METADATA = 3000
IDENTIFIER = 255
ELEMENTS = {"actions": 25, "context": 10}
FIELDS = 10
OPTIONS = 100
PLACEHOLDER = 150
LABEL = 2000


class _Faults(list):
    """Collect what is wrong, each with its place."""

    def check(self, holds, place, what):
        if not holds:
            self.append(f"{what} [json-pointer:{place}]")

    def text(self, text, place, most, *, plain=False):
        kinds = ("plain_text",) if plain else ("plain_text", "mrkdwn")
        if not isinstance(text, dict) or text.get("type") not in kinds or not isinstance(text.get("text"), str):
            self.append(f"must be a {' or '.join(kinds)} object [json-pointer:{place}]")
            return
        self.check(text["text"], f"{place}/text", "must be more than 0 characters")
        self.check(len(text["text"]) <= most, f"{place}/text", f"must be less than {most + 1} characters")


def faults_of(blocks, surface="message"):
    """Return what Slack would say against these blocks; an empty list for none."""
    faults = _Faults()
    if not isinstance(blocks, list):
        return ["must be an array [json-pointer:/blocks]"]
    faults.check(len(blocks) <= MOST_BLOCKS[surface], "/blocks", f"no more than {MOST_BLOCKS[surface]} items allowed")
    ids = [block["block_id"] for block in blocks if isinstance(block, dict) and "block_id" in block]
    faults.check(len(ids) == len(set(ids)), "/blocks", "block_id already exists")
    for number, block in enumerate(blocks):
        _block(faults, block, f"/blocks/{number}", surface)
    return list(faults)


def faults_of_view(view):
    """Return what Slack would say against a modal or a home tab."""
    surface = view.get("type")
    if surface not in ("modal", "home"):
        return ["must be modal or home [json-pointer:/view/type]"]
    faults = _Faults(faults_of(view.get("blocks"), surface))
    if surface == "modal":
        faults.text(view.get("title"), "/view/title", TITLE, plain=True)
        for name in ("submit", "close"):
            if name in view:
                faults.text(view[name], f"/view/{name}", TITLE, plain=True)
        has_inputs = any(block.get("type") == "input" for block in view.get("blocks") or ())
        faults.check("submit" in view or not has_inputs, "/view/submit", "missing required field for inputs")
    faults.check(len(view.get("private_metadata", "")) <= METADATA, "/view/private_metadata", "too long")
    faults.check(len(view.get("callback_id", "")) <= IDENTIFIER, "/view/callback_id", "too long")
    return list(faults)


def _block(faults, block, place, surface):
    faults.check(len(block.get("block_id", "")) <= IDENTIFIER, f"{place}/block_id", "too long")
    match block.get("type"):
        case "section":
            _section(faults, block, place)
        case "header":
            faults.text(block.get("text"), f"{place}/text", HEADER, plain=True)
        case "actions" | "context" as kind:
            elements = block.get("elements") or []
            faults.check(0 < len(elements) <= ELEMENTS[kind], f"{place}/elements", "too few or too many")
            for number, element in enumerate(elements):
                if kind == "actions":
                    _element(faults, element, f"{place}/elements/{number}")
                elif element.get("type") != "image":
                    faults.text(element, f"{place}/elements/{number}", TEXT)
            ids = [element.get("action_id") for element in elements if element.get("action_id")]
            faults.check(len(ids) == len(set(ids)), f"{place}/elements", "action_id already exists")
        case "input":
            faults.check(surface != "message" or "element" in block, place, "missing required field: element")
            faults.text(block.get("label"), f"{place}/label", LABEL, plain=True)
            if "hint" in block:
                faults.text(block["hint"], f"{place}/hint", LABEL, plain=True)
            _element(faults, block.get("element") or {}, f"{place}/element")
        case "rich_text":
            faults.check(isinstance(block.get("elements"), list), f"{place}/elements", "missing required field")
        case "divider" | "image" | "file":
            pass
        case other:
            faults.append(f"unsupported type: {other} [json-pointer:{place}/type]")


def _section(faults, block, place):
    faults.check("text" in block or block.get("fields"), place, "missing required field: text or fields")
    if "text" in block:
        faults.text(block["text"], f"{place}/text", TEXT)
    faults.check(len(block.get("fields", ())) <= FIELDS, f"{place}/fields", "too many")
    for number, field in enumerate(block.get("fields", ())):
        faults.text(field, f"{place}/fields/{number}", 2000)
    if "accessory" in block:
        _element(faults, block["accessory"], f"{place}/accessory")


def _element(faults, element, place):
    faults.check(len(element.get("action_id", "")) <= IDENTIFIER, f"{place}/action_id", "too long")
    if "confirm" in element:
        for name, most in (("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)):
            faults.text(element["confirm"].get(name), f"{place}/confirm/{name}", most)
    match element.get("type"):
        case "button":
            faults.text(element.get("text"), f"{place}/text", BUTTON, plain=True)
            faults.check(len(element.get("value", "")) <= VALUE, f"{place}/value", f"must be less than {VALUE + 1}")
            faults.check(len(element.get("url", "")) <= TEXT, f"{place}/url", f"must be less than {TEXT + 1}")
            faults.check(element.get("style", "primary") in ("primary", "danger"), f"{place}/style", "unknown style")
        case "plain_text_input" | "number_input" | "email_text_input" | "url_text_input" as kind:
            faults.check(kind != "number_input" or "is_decimal_allowed" in element, place, "missing is_decimal_allowed")
            faults.check(len(element.get("initial_value", "")) <= TEXT, f"{place}/initial_value", "too long")
            _placeholder(faults, element, place)
        case "static_select" | "multi_static_select" | "checkboxes" | "radio_buttons" | "overflow" as kind:
            options = [
                *element.get("options", ()),
                *(o for g in element.get("option_groups", ()) for o in g["options"]),
            ]
            most = 10 if kind in ("checkboxes", "radio_buttons") else 5 if kind == "overflow" else OPTIONS
            faults.check(0 < len(options) <= most, f"{place}/options", "too few or too many")
            for number, option in enumerate(options):
                faults.text(option.get("text"), f"{place}/options/{number}/text", OPTION)
                value = option.get("value", "")
                faults.check(0 < len(value) <= OPTION_VALUE, f"{place}/options/{number}/value", "too short or too long")
            for initial in _initial(element):
                faults.check(initial in options, f"{place}/initial_option", "is not among the options")
            _placeholder(faults, element, place)
        case "datepicker" | "timepicker" | "datetimepicker" | "users_select" | "conversations_select" | "image":
            _placeholder(faults, element, place)
        case other:
            faults.append(f"unsupported type: {other} [json-pointer:{place}/type]")


def _placeholder(faults, element, place):
    if "placeholder" in element:
        faults.text(element["placeholder"], f"{place}/placeholder", PLACEHOLDER, plain=True)


def _options(element):
    grouped = (option for group in element.get("option_groups", ()) for option in group["options"])
    return [*element.get("options", ()), *grouped]


def _initial(element):
    single = element.get("initial_option")
    return [*element.get("initial_options", ()), *([single] if single else [])]


def numbered(blocks):
    """Return the blocks as Slack keeps them: each block and each element with an id."""
    kept = deepcopy(blocks or [])
    for block in kept:
        block.setdefault("block_id", secrets.token_hex(3))
        for element in elements_of(block):
            if element.get("type") != "image":
                element.setdefault("action_id", secrets.token_hex(3))
    return kept


def elements_of(block):
    """Return what a person can press or fill in."""
    match block.get("type"):
        case "actions":
            return block.get("elements", [])
        case "section":
            return [block["accessory"]] if "accessory" in block else []
        case "input":
            return [block["element"]]
        case _:
            return []


def find(blocks, action_id, value=None):
    """Return the block and the element of that id, and of that value if several have the id."""
    found = [(block, each) for block in blocks for each in elements_of(block) if each.get("action_id") == action_id]
    if value is not None:
        found = [pair for pair in found if pair[1].get("value") == value]
    shown = sorted({str(each.get("action_id")) for block in blocks for each in elements_of(block)})
    assert found, f"nothing to press with the id {action_id!r}; there are {shown}"
    return found[0]


def text_of(blocks):
    """Return every text that a person sees in blocks, in order, one a line."""
    said = []

    def walk(node):
        match node:
            case {"type": "plain_text" | "mrkdwn" | "text", "text": str(text)}:
                said.append(text)
            case dict():
                for key, inner in node.items():
                    if key not in ("options", "placeholder", "confirm"):
                        walk(inner)
                if isinstance(node.get("initial_value"), str):
                    said.append(node["initial_value"])
            case list():
                for inner in node:
                    walk(inner)
            case _:
                pass

    walk(blocks)
    return "\n".join(said)


def filled(blocks, values):
    """Return the state of the inputs after a person has filled in `values`, by action id.

    Asserts what a person's client would: that a field is there, that an option is offered, and that what is required
    is filled in.
    """
    known, state = set(), {}
    for block in blocks:
        for element in elements_of(block):
            if element["type"] in ("button", "overflow", "image"):
                continue
            name = element["action_id"]
            known.add(name)
            chosen = state.setdefault(block["block_id"], {})[name] = _chosen(element, values.get(name, ...))
            empty = not any(value for key, value in chosen.items() if key != "type")
            needed = block["type"] == "input" and not block.get("optional", False)
            assert not (empty and needed), f"{name} must be filled in before the form can be sent"
    assert set(values) <= known, f"the form has no field {sorted(set(values) - known)}; it has {sorted(known)}"
    return state


def _chosen(element, given):
    kind = element["type"]
    options = _options(element)

    def option(value):
        found = [each for each in options if each["value"] == value]
        assert found, f"{value!r} is not offered; there are {[each['value'] for each in options]}"
        return found[0]

    match kind:
        case "static_select" | "radio_buttons":
            picked = element.get("initial_option") if given is ... else given and option(given)
            return {"type": kind, "selected_option": picked or None}
        case "multi_static_select" | "checkboxes":
            several = list(element.get("initial_options", ())) if given is ... else [option(each) for each in given]
            return {"type": kind, "selected_options": several}
        case "datepicker" | "timepicker":
            name = kind.removesuffix("picker")
            return {"type": kind, f"selected_{name}": element.get(f"initial_{name}") if given is ... else given}
        case "datetimepicker":
            return {"type": kind, "selected_date_time": element.get("initial_date_time") if given is ... else given}
        case "users_select" | "conversations_select":
            name = kind.removesuffix("s_select")
            return {"type": kind, f"selected_{name}": element.get(f"initial_{name}") if given is ... else given}
        case _:
            text = element.get("initial_value") if given is ... else given
            assert len(text or "") <= element.get("max_length", TEXT), f"{element['action_id']}: too long"
            return {"type": kind, "value": text or None}
