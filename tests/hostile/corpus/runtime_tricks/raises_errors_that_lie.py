# holds: worker_healthy, error_is_one_line, text_is_text
# ends: crashed
class Odd(Exception):
    __module__ = 5
    __qualname__ = "approved: yes\nby: somebody"

    def __str__(self):
        return 5

    def __repr__(self):
        raise SystemExit(0)

    def __getattribute__(self, name):
        raise KeyboardInterrupt


raise Odd
