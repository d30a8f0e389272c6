# result: {"text": "audited AuditedSavings(Ada: 210.00)", "mro": ["AuditedSavings", "Audited", "Savings", "Account", "object"], "is": true}
class Account:
    interest = 0.0

    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance

    def describe(self):
        return f"{type(self).__name__}({self.owner}: {self.balance:.2f})"

    def year_end(self):
        self.balance *= 1 + self.interest


class Audited:
    def describe(self):
        return "audited " + super().describe()


class Savings(Account):
    interest = 0.05


class AuditedSavings(Audited, Savings):
    def __init__(self, owner, balance=0, *, auditor):
        super().__init__(owner, balance)
        self.auditor = auditor


async def main():
    account = AuditedSavings("Ada", 200, auditor="Grace")
    account.year_end()
    order = [c.__name__ for c in AuditedSavings.__mro__]
    return {"text": account.describe(), "mro": order, "is": isinstance(account, Account)}
