"""Settings and a test runner for Django's suite: one line for each test, `pass NAME`, `fail NAME` or
`skip NAME`, to the file that OUTCOMES names."""

import os
from unittest import TextTestResult

from django.test.runner import DiscoverRunner


def _database(name):
    return {
        "ENGINE": "django.db.backends.mysql",
        "NAME": name,
        "USER": "root",
        "HOST": "127.0.0.1",
        "PORT": os.environ["PORT"],
        "OPTIONS": {"charset": "utf8mb4"},
        "TEST": {"CHARSET": "utf8mb4"},
    }


DATABASES = {"default": _database("django"), "other": _database("django_other")}
SECRET_KEY = "any"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "django_outcomes.Outcomes"


class Result(TextTestResult):
    """Writes as it goes, so that what was reached is known if the run is ended."""

    file = open(os.environ["OUTCOMES"], "a", encoding="utf-8")

    def write(self, outcome, test):
        self.file.write(f"{outcome} {test.id()}\n")
        self.file.flush()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write("pass", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.write("fail", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.write("fail", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.write("fail", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write("skip", test)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.write("pass", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.write("fail", test)


class Outcomes(DiscoverRunner):
    def get_resultclass(self):
        return Result
