# holds: in_time
# ends: crashed
haystack = "a" * 2_000_000
while True:
    haystack.count("a" * 1_000_000 + "b")
    haystack.find("b" + "a" * 1_000_000)
