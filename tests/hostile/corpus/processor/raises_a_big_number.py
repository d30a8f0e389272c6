# holds: in_time
# ends: any
return 10 ** 10 ** 10 % 7
