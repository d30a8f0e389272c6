# result: {"text": "   February 2024\nMo Tu We Th Fr Sa Su\n          1  2  3  4\n 5  6  7  8  9 10 11\n12 13 14 15 16 17 18\n19 20 21 22 23 24 25\n26 27 28 29\n", "fridays": [6, 13, 20, 27], "leap": [2000, 2024], "unlucky": ["September", "December"], "timegm": 1704067200}
# output: "   February 2024\nMo Tu We Th Fr Sa Su\n          1  2  3  4\n 5  6  7  8  9 10 11\n12 13 14 15 16 17 18\n19 20 21 22 23 24 25\n26 27 28 29\n\n"
import calendar

text = calendar.TextCalendar(calendar.MONDAY).formatmonth(2024, 2)
print(text)
fridays = [week[calendar.FRIDAY] for week in calendar.monthcalendar(2024, 9) if week[calendar.FRIDAY]]
thirteenths = [m for m in range(1, 13) if calendar.weekday(2024, m, 13) == calendar.FRIDAY]
return {
    "text": text,
    "fridays": fridays,
    "leap": [y for y in (1900, 2000, 2023, 2024) if calendar.isleap(y)],
    "unlucky": [calendar.month_name[m] for m in thirteenths],
    "timegm": calendar.timegm((2024, 1, 1, 0, 0, 0)),
}
