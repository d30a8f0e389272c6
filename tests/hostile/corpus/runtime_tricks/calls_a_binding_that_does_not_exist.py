# holds: calls_declared
# ends: crashed
return await mail.transfer(amount=1000)
