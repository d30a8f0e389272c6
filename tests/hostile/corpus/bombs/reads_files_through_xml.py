# holds: secret_kept
# ends: any
import xml.dom.minidom
import xml.sax

TEXT = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{CANARY}/secret.txt">]><x>&e;</x>'
for attempt in (
    lambda: xml.dom.minidom.parseString(TEXT).toxml(),
    lambda: xml.sax.parseString(TEXT, xml.sax.ContentHandler()),
    lambda: xml.sax.parse(CANARY + "/secret.txt", xml.sax.ContentHandler()),
):
    try:
        print(attempt())
    except Exception as error:
        print(type(error).__name__, error)
try:
    parser = xml.sax.make_parser()
    parser.setFeature(xml.sax.handler.feature_external_ges, True)

    class Printer(xml.sax.ContentHandler):
        def characters(self, content):
            print(content)

    import io

    parser.setContentHandler(Printer())
    parser.parse(io.StringIO(TEXT))
except Exception as error:
    print(type(error).__name__, error)
return "tried"
