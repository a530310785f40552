"""A plugin of pytest: lets the tests that came with PyMySQL 0.10.1, the last package that holds them,
run on the PyMySQL that is installed, against the server at PORT."""

import os
import sys
import types

import pymysql

_compat = types.ModuleType("pymysql._compat")
_compat.PY2 = _compat.PYPY = _compat.JYTHON = _compat.IRONPYTHON = False
_compat.CPYTHON = True
_compat.text_type = _compat.str_type = str
_compat.long_type, _compat.range_type, _compat.unichr = int, range, chr
_util = types.ModuleType("pymysql.util")
_util.byte2int = lambda value: value if isinstance(value, int) else value[0]
_util.int2byte = lambda value: bytes([value])
sys.modules["pymysql._compat"] = _compat
sys.modules["pymysql.util"] = pymysql.util = _util
pymysql.escape_string = pymysql.converters.escape_string
pymysql.cursors.Cursor._last_executed = property(lambda cursor: cursor._executed)
# The older names of arguments, which the driver warns of.
_connect = pymysql.connect


def _connect_by_old_names(*arguments, **named):
    for old, new in [("db", "database"), ("passwd", "password")]:
        if old in named:
            named[new] = named.pop(old)
    return _connect(*arguments, **named)


pymysql.connect = pymysql.Connect = _connect_by_old_names

# The package of the tests without its own start, which imports them all before the server is known.
_tests = types.ModuleType("pymysql.tests")
_tests.__path__ = [os.path.join(os.getcwd(), "tests")]
sys.modules["pymysql.tests"] = _tests

from pymysql.tests import base  # noqa: E402

_server = {"host": "127.0.0.1", "port": int(os.environ["PORT"]), "user": "root"}
base.PyMySQLTestCase.databases = [
    {**_server, "db": "test1", "use_unicode": True, "local_infile": True},
    {**_server, "db": "test2"},
]
