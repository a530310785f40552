"""PyMySQL with SphinxQL: searches, facets, SHOW META, excerpts, keywords, writes.

The table is the one that tests/clients/main.rs makes.

    sphinxql_client.py PORT
"""

import sys

import pymysql

connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", database="press", autocommit=True)
cursor = connection.cursor()


def rows(statement, *values):
    cursor.execute(statement, values or None)
    return list(cursor.fetchall())


def same(what, got, expected):
    assert got == expected, f"{what}: {got} instead of {expected}"


rows("SET sql_dialect = 'sphinx'")
same("weights", rows("SELECT id, WEIGHT() FROM articles WHERE MATCH(%s)", "fox"), [(1, 2500), (2, 2500)])
meta = dict(rows("SHOW META"))
same("SHOW META", [meta[name] for name in ("total_found", "keyword[0]", "docs[0]", "hits[0]")], ["2", "fox", "2", "4"])
same(
    "options",
    rows("SELECT id, WEIGHT() w FROM articles WHERE MATCH('fox') OPTION ranker=bm25, field_weights=(title=10)"),
    [(1, 11500), (2, 11500)],
)
same("groups", rows("SELECT year, COUNT(*) c FROM articles WHERE MATCH('fox | dog') GROUP BY year ORDER BY c DESC"), [(2002, 2), (2001, 1)])
cursor.execute("SELECT id FROM articles WHERE MATCH('dog') ORDER BY id ASC FACET year FACET author ORDER BY author ASC")
sets = [list(cursor.fetchall())]
while cursor.nextset():
    sets.append(list(cursor.fetchall()))
same("facets", sets, [[(2,), (3,)], [(2002, 2)], [("ann", 1), ("bob", 1)]])
same("an element of a set", rows("SELECT id FROM articles WHERE tags = 3 ORDER BY id ASC"), [(2,), (3,)])
same("excerpts", rows("CALL SNIPPETS('a quick fox', 'articles', 'fox', '[' AS before_match, ']' AS after_match)"), [("a quick [fox]",)])
keywords = rows("CALL KEYWORDS('the Fox', 'articles', 1)")
same("keywords", [str(cell) for cell in keywords[1]], ["2", "fox", "fox", "2", "4"])
try:
    rows("SELECT id FROM articles WHERE MATCH('@nofield x')")
except pymysql.err.MySQLError as error:
    assert error.args[0] == 1064 and "no field 'nofield' found in schema" in error.args[1], error
else:
    raise AssertionError("an unknown field is no error")
cursor.execute("REPLACE INTO articles (id, title, body, year, price, author, tags) VALUES (%s, %s, %s, %s, %s, %s, (4,5))", (4, "grey fox", "it's \\ a fox", 2020, 4.5, "cy"))
same("a new row", rows("SELECT id FROM articles WHERE MATCH('grey')"), [(4,)])
same("deleted rows", cursor.execute("DELETE FROM articles WHERE id = 4"), 1)
same("a deleted row", rows("SELECT id FROM articles WHERE MATCH('grey')"), [])
print("ok")
