# holds: memory_bounded, in_time
# ends: any
import xml.etree.ElementTree as ElementTree

names = [f"e{n}" for n in range(30)]
entities = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip(names, names[1:]))
text = f'<!DOCTYPE x [<!ENTITY e0 "laughing out loud">{entities}]><x>&{names[-1]};</x>'
try:
    return len(ElementTree.fromstring(text).text)
except ElementTree.ParseError as error:
    return str(error)
