"""sphinxapi-py3, Python's client of SphinxAPI: all it can ask of a table of words.

The table is the one that tests/clients/main.rs makes.

    sphinxapi_client.py PORT
"""

import sys

import sphinxapi as api

port = int(sys.argv[1])


def client():
    made = api.SphinxClient()
    made.SetServer("127.0.0.1", port)
    # It waits for a second, which is too short on a busy machine.
    made.SetConnectTimeout(60.0)
    made.SetMatchMode(api.SPH_MATCH_EXTENDED2)
    return made


def value(of):
    return of.decode() if isinstance(of, bytes) else of


def rows(asked, query, *attributes):
    """The rows of an answer: key, weight and the asked attributes."""
    answer = asked.Query(query, "articles")
    assert answer, f"{query}: {asked.GetLastError()}"
    assert answer["total_found"] == len(answer["matches"]), answer
    found = []
    for match in answer["matches"]:
        values = [value(match["attrs"][name]) for name in attributes]
        found.append((match["id"], match["weight"], *values))
    return found


def same(what, got, expected):
    assert got == expected, f"{what}: {got} instead of {expected}"


it = client()
same(
    "rows",
    rows(it, "fox", "year", "price", "author", "tags"),
    [(1, 2500, 2001, 1.5, "ann", [1, 2]), (2, 2500, 2002, 2.5, "bob", [2, 3])],
)
it.SetSortMode(api.SPH_SORT_ATTR_DESC, "year")
same("order", [row[0] for row in rows(it, "fox | dog")], [2, 3, 1])
it.SetSortMode(api.SPH_SORT_RELEVANCE)

for what, choose, expected in [
    ("a value", lambda: it.SetFilter("year", [2002]), [2, 3]),
    ("a range that is left out", lambda: it.SetFilterRange("year", 2001, 2001, 1), [2, 3]),
    ("a range of floats", lambda: it.SetFilterFloatRange("price", 1.0, 2.0), [1]),
    ("a value of a set", lambda: it.SetFilter("tags", [3]), [2, 3]),
]:
    choose()
    same(what, [row[0] for row in rows(it, "fox | dog")], expected)
    it.ResetFilters()

it.SetGroupBy("year", api.SPH_GROUPBY_ATTR, "@count desc")
same("groups", rows(it, "fox | dog", "@groupby", "@count"), [(2, 2500, 2002, 2), (1, 2500, 2001, 1)])
it.ResetGroupBy()

it.SetSelect("*, year*2 AS twice")
same("a select list", rows(it, "@title fox", "twice"), [(1, 1500, 4002), (2, 1500, 4004)])
it.SetSelect("*")
it.SetRankingMode(api.SPH_RANK_SPH04)
same("another ranker", rows(it, "red fox")[0][0], 1)
it.SetRankingMode(api.SPH_RANK_PROXIMITY_BM25)
it.SetFieldWeights({"title": 10})
same("weights", rows(it, "fox"), [(1, 11500), (2, 11500)])
it.SetFieldWeights({})
it.SetIDRange(2, 3)
same("a range of keys", [row[0] for row in rows(it, "")], [2, 3])

it = client()
for mode, expected in [(api.SPH_MATCH_ALL, [1]), (api.SPH_MATCH_ANY, [1, 2]), (api.SPH_MATCH_PHRASE, [1])]:
    it.SetMatchMode(mode)
    same(f"mode {mode}", sorted(row[0] for row in rows(it, "red fox")), expected)
it.SetMatchMode(api.SPH_MATCH_EXTENDED2)
it.AddQuery("fox", "articles")
it.AddQuery("dog", "articles")
answers = it.RunQueries()
same("several queries", [answer["total_found"] for answer in answers], [2, 2])
words = [(value(word["word"]), word["docs"], word["hits"]) for word in answers[0]["words"]]
same("words", words, [("fox", 2, 4)])

for query, index, named in [("@nofield x", "articles", "field"), ("x", "nowhere", "nowhere")]:
    answer = it.Query(query, index)
    error = str(it.GetLastError())
    assert not answer and named in error, f"{query} in {index}: {answer}, {error}"

texts = it.BuildExcerpts(
    ["the quick brown fox jumps"], "articles", "fox", {"before_match": "[", "after_match": "]"}
)
same("excerpts", [value(text) for text in texts], ["the quick brown [fox] jumps"])
# BuildKeywords and UpdateAttributes fail in the client itself, before it sends anything. Perl's client asks for both.
assert it.Open(), it.GetLastError()
for _ in range(2):
    same("a kept connection", rows(it, "quick", "year"), [(1, 1680, 2001)])
it.Close()
assert it.Status(), it.GetLastError()
print("ok")
