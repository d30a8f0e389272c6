# holds: in_time
# ends: any
from decimal import Decimal, getcontext

getcontext().prec = 50_000_000
return str(Decimal(7) ** Decimal("1234567.7"))[:5]
