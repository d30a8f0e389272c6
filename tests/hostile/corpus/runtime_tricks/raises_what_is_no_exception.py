# holds: worker_healthy, error_is_one_line
# ends: any
class Odd(BaseException):
    def __str__(self):
        while True:
            pass


raise Odd
