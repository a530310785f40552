//! HIGHLIGHT() and PACKEDFACTORS(). The excerpts are those that Manticore's manual shows of the same rows, the factors
//! what Sphinx 2.2.11 answered with `index_field_lengths = 1`.

use remora_sql::Session;

use super::{
    all, sets,
    support::{Server, rows, run},
};

const BOOKS: [&str; 3] = [
    "CREATE TABLE books (id INT PRIMARY KEY, title VARCHAR(100), content TEXT, note VARCHAR(50)) \
     words='title,content'",
    "INSERT INTO books VALUES \
     (1, 'Book one', 'They followed Bander. The robots remained at a polite distance, but their \
      presence was a constantly felt threat.', 'one note'), \
     (2, 'Book five', 'Bander ushered all three into the room. One of the robots followed as well. \
      Bander gestured the other robots away and entered itself. The door closed behind it.', NULL), \
     (3, 'Book four', 'Don`t try to compete in childishness, said Bliss.', ''), \
     (4, 'Book three', 'Trevize whispered, It gets infantile pleasure out of display. I`d love to \
      knock it down.', 'down')",
    "CREATE TABLE plain (id INT PRIMARY KEY, s TEXT)",
];

async fn refuse(session: &mut Session, statement: &str, part: &str) {
    let error = run(session, statement).await.unwrap_err();
    assert!(error.message.contains(part), "{statement}: {}", error.message);
}

const HIGHLIGHTS: &[(&str, &str, &str)] = &[
    ("HIGHLIGHT()", "MATCH('try')", "Don`t <b>try</b> to compete in childishness, said Bliss."),
    ("highlight()", "MATCH('@title one')", "Book <b>one</b>"),
    (
        "HIGHLIGHT({before_match='[match]',after_match='[/match]'})",
        "MATCH('@title one')",
        "Book [match]one[/match]",
    ),
    (
        "HIGHLIGHT({},'title,content')",
        "MATCH('one|robots')",
        "Book <b>one</b> | They followed Bander. The <b>robots</b> remained at a polite \
             distance, but their presence was a constantly felt threat. Bander ushered all three \
             into the room. <b>One</b> of the <b>robots</b> followed as well. Bander gestured the \
             other <b>robots</b> away and entered itself. The door closed behind it.",
    ),
    // A string is not a field: limits to fields have no effect, and a text without a match is shown from its beginning.
    ("HIGHLIGHT({}, title)", "MATCH('one')", "Book <b>one</b> Book five"),
    ("HIGHLIGHT({}, note)", "MATCH('@title one')", "<b>one</b> note"),
    ("HIGHLIGHT({}, note)", "MATCH('five')", ""),
    // A query other than the search's.
    ("HIGHLIGHT({}, 'title', 'five')", "MATCH('robots') ORDER BY id", {
        "Book one Book <b>five</b>"
    }),
    // A word in another field than the query requires is no match.
    ("HIGHLIGHT({}, 'content', '@title one')", "id = 2", {
        "Bander ushered all three into the room. One of the robots followed as well. Bander \
             gestured the other robots away and entered itself. The door closed behind it."
    }),
    ("HIGHLIGHT({allow_empty=1}, 'title')", "MATCH('robots')", " "),
    (
        "HIGHLIGHT({before_match='<%SNIPPET_ID%>', after_match='', start_snippet_id=7}, 'title')",
        "MATCH('four')",
        "Book <7>four",
    ),
    // Numbering restarts in each field, as in Manticore.
    (
        "HIGHLIGHT({before_match='<%SNIPPET_ID%>', after_match=''}, 'title,content')",
        "MATCH('one|robots') ORDER BY id",
        "Book <1>one | They followed Bander. The <1>robots remained at a polite distance, but \
             their presence was a constantly felt threat. Bander ushered all three into the room. \
             <1>One of the <2>robots followed as well. Bander gestured the other <3>robots away \
             and entered itself. The door closed behind it.",
    ),
    (
        "HIGHLIGHT({field_separator='//'}) LIKE 'Book <b>one</b>//They followed%'",
        "MATCH('one robots') AND id = 1",
        "1",
    ),
    // A phrase is highlighted as one.
    ("HIGHLIGHT({}, 'content')", "MATCH('\"love to\"')", {
        "Trevize whispered, It gets infantile pleasure out of display. I`d <b>love to</b> \
             knock it down."
    }),
    ("UPPER(HIGHLIGHT({}, 'title'))", "MATCH('four') LIMIT 1", "BOOK <B>FOUR</B>"),
];

const REFUSED: &[(&str, &str, &str)] = &[
    ("HIGHLIGHT()", "id = 1", "shows what WHERE MATCH('…') finds"),
    ("HIGHLIGHT({}, 'note')", "MATCH('one')", "unknown field 'note' in HIGHLIGHT()"),
    ("HIGHLIGHT({zzz=1})", "MATCH('one')", "zzz"),
    ("HIGHLIGHT({limit='x'})", "MATCH('one')", "Unknown HIGHLIGHT option: limit=x"),
    ("HIGHLIGHT({limits_per_field=0})", "MATCH('one')", "limits are of each field"),
    ("HIGHLIGHT({force_snippets=1})", "MATCH('one')", "force_snippets=1 of HIGHLIGHT()"),
    ("HIGHLIGHT('title')", "MATCH('one')", "error in your SQL syntax"),
    ("HIGHLIGHT({}, title, 'one', 1)", "MATCH('one')", "error in your SQL syntax"),
    ("HIGHLIGHT({}, title, '(one')", "MATCH('one')", "syntax error"),
    ("id", "HIGHLIGHT() = 'x' AND MATCH('one')", "shows what WHERE MATCH('…') finds"),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_a_search_found_is_highlighted() {
    let server = Server::new();
    let mut session = server.session();
    all(&mut session, &BOOKS).await;
    for (call, behind, expected) in HIGHLIGHTS {
        let statement = format!("SELECT {call} AS shown FROM books WHERE {behind}");
        assert_eq!(sets(&mut session, &statement).await, *expected, "{statement}");
    }
    all(
        &mut session,
        &["PREPARE s FROM 'SELECT HIGHLIGHT() FROM books WHERE MATCH(?)'", "SET @q = 'five'"],
    )
    .await;
    assert_eq!(sets(&mut session, "EXECUTE s USING @q").await, "Book <b>five</b>");
    let of_another =
        "PREPARE o FROM 'SELECT HIGHLIGHT({limit=?}, title, ?) FROM books WHERE id = 1'";
    all(&mut session, &[of_another, "SET @q = 'one', @l = 100"]).await;
    assert_eq!(sets(&mut session, "EXECUTE o USING @l, @q").await, "Book <b>one</b>");
    let second = "SELECT title FROM books WHERE MATCH('nothing') UNION ALL \
                  SELECT HIGHLIGHT({}, 'title', 'one') FROM books AS b WHERE id = 1";
    assert_eq!(sets(&mut session, second).await, "Book <b>one</b>");
    let view = "CREATE VIEW shown AS SELECT id, HIGHLIGHT({limit=40, around=2}) AS h FROM books \
                WHERE MATCH('four')";
    all(&mut session, &[view]).await;
    assert_eq!(sets(&mut session, "SELECT h FROM shown").await, "Book <b>four</b>");
    for (call, behind, part) in REFUSED {
        refuse(&mut session, &format!("SELECT {call} FROM books WHERE {behind}"), part).await;
    }
    refuse(&mut session, "SELECT HIGHLIGHT({}, s, 'x') FROM plain", "none has words").await;
}

/// Rows of which the first three have texts that fit an excerpt and the others have none that do.
const LONG: [&str; 2] = [
    "CREATE TABLE long_ones (id INT PRIMARY KEY, n INT NOT NULL, title VARCHAR(50), body LONGTEXT) \
     words='title,body'",
    "INSERT INTO long_ones VALUES (1, 9, 'one', 'coral one'), (2, 8, 'two', 'coral two'), \
     (3, 7, 'three', 'coral three'), (4, 2, 'four', REPEAT('coral reef ', 100000)), \
     (5, 2, 'five', REPEAT('coral reef ', 100000)), (6, 2, 'six', REPEAT('coral reef ', 100000))",
];

/// Of groups, excerpts are made of those that are shown.
const OF_GROUPS: &[(&str, &str)] = &[
    (
        "SELECT n, HIGHLIGHT(), COUNT(*) FROM long_ones WHERE # GROUP 1 BY n \
         ORDER BY n DESC LIMIT 2",
        "9|<b>coral</b> one|1 8|<b>coral</b> two|1",
    ),
    (
        "SELECT n, SNIPPET(ANY_VALUE(body), 'coral') FROM long_ones WHERE # GROUP BY n \
         HAVING n < 9 ORDER BY n DESC LIMIT 1, 1",
        "7|<b>coral</b> three",
    ),
    (
        "SELECT id FROM long_ones WHERE # ORDER BY id LIMIT 1 \
         FACET HIGHLIGHT() BY n ORDER BY n DESC LIMIT 2 \
         FACET n, SNIPPET(body, 'one') AS s BY n ORDER BY n DESC LIMIT 1",
        "1 ; <b>coral</b> one|1 <b>coral</b> two|1 ; 9|coral <b>one</b>|1",
    ),
    (
        "SELECT title, HIGHLIGHT({}, 'body') FROM long_ones WHERE # GROUP 1 BY title \
         HAVING id < 9 ORDER BY id LIMIT 2",
        "one|<b>coral</b> one two|<b>coral</b> two",
    ),
];

/// A text that is too long is refused where an excerpt is made of it: none is made of rows that are not shown.
#[tokio::test(flavor = "multi_thread")]
async fn excerpts_are_made_of_rows_that_are_shown_alone() {
    for server in [Server::new(), Server::optimizing()] {
        let mut session = server.session();
        all(&mut session, &LONG).await;
        let first = "1|<b>coral</b> one 2|<b>coral</b> two";
        for (statement, expected) in [
            ("SELECT id, SNIPPET(body, 'coral') FROM long_ones WHERE # ORDER BY id LIMIT 2", first),
            ("SELECT id, HIGHLIGHT() FROM long_ones WHERE # ORDER BY n DESC LIMIT 2", first),
            (
                "SELECT id, HIGHLIGHT({}, 'body') FROM long_ones WHERE # \
                 ORDER BY n * 2 + id DESC LIMIT 2",
                first,
            ),
            ("SELECT HIGHLIGHT() FROM long_ones WHERE # ORDER BY id LIMIT 2, 1", {
                "<b>coral</b> three"
            }),
            (
                "SELECT id, CONCAT(title, ': ', SNIPPET(body, 'coral')) FROM long_ones WHERE # \
                 ORDER BY id LIMIT 1, 2",
                "2|two: <b>coral</b> two 3|three: <b>coral</b> three",
            ),
            // Two of one text, and beside what the text is read for anyway.
            (
                "SELECT SNIPPET(body, 'coral'), n, SNIPPET(body, 'one') FROM long_ones WHERE # \
                 ORDER BY n DESC LIMIT 1",
                "<b>coral</b> one|9|coral <b>one</b>",
            ),
            (
                "SELECT id, LENGTH(body), SNIPPET(body, title) FROM long_ones WHERE # \
                 ORDER BY id LIMIT 1",
                "1|9|coral <b>one</b>",
            ),
            (
                "SELECT id, SNIPPET(body, 'coral') FROM long_ones WHERE # AND n + 0 > 1 ORDER BY id LIMIT 2",
                { first },
            ),
            ("SELECT id, SNIPPET(body, 'coral') FROM long_ones LIMIT 2", first),
            (
                "SELECT s FROM (SELECT id, SNIPPET(body, 'coral') AS s FROM long_ones WHERE # \
                 ORDER BY id LIMIT 2) d WHERE id = 2",
                "<b>coral</b> two",
            ),
        ] {
            let statement = statement.replace('#', "MATCH('coral')");
            assert_eq!(sets(&mut session, &statement).await, expected, "{statement}");
        }
        for (statement, expected) in OF_GROUPS {
            let statement = statement.replace('#', "MATCH('coral')");
            assert_eq!(sets(&mut session, &statement).await, *expected, "{statement}");
        }
        for what in [
            "SELECT id, SNIPPET(body, 'coral') FROM long_ones ORDER BY id LIMIT 4",
            // The text is read for a condition, and would have to be held for the order.
            "SELECT id, SNIPPET(body, 'coral') FROM long_ones WHERE LENGTH(body) > 1 \
             ORDER BY n DESC LIMIT 1",
            "SELECT id FROM long_ones ORDER BY SNIPPET(body, 'coral') LIMIT 1",
            "SELECT id FROM long_ones WHERE SNIPPET(body, 'coral') > '' ORDER BY id LIMIT 1",
            "SELECT SNIPPET(body, 'coral') AS s FROM long_ones GROUP BY s ORDER BY 1 LIMIT 1",
            "SELECT n, SNIPPET(body, 'coral') AS s FROM long_ones GROUP 1 BY n ORDER BY s LIMIT 1",
            "SELECT n, SNIPPET(body, 'coral') AS s FROM long_ones GROUP 1 BY n ORDER BY n LIMIT 1",
        ] {
            refuse(&mut session, what, "SNIPPET takes texts of").await;
        }
    }
}

const FACTORS: &[(&str, &str, &str)] = &[
    (
        "PACKEDFACTORS()",
        "MATCH('robots') AND id = 2 OPTION ranker=expr('sum(lcs)')",
        "bm25=578, bm25a=0.568700, field_mask=2, doc_word_count=1, field1=(lcs=1, hit_count=2, \
         word_count=1, tf_idf=0.251930, min_idf=0.125965, max_idf=0.125965, sum_idf=0.125965, \
         min_hit_pos=11, min_best_span_pos=11, exact_hit=0, max_window_hits=1, min_gaps=0, \
         exact_order=1, lccs=1, wlccs=0.125965, atc=0.000000), word0=(tf=2, idf=0.125965)",
    ),
    (
        "FACTORS({json=1})",
        "MATCH('three') AND id = 4 OPTION ranker=expr('bm25')",
        "{\"bm25\":557, \"bm25a\":0.559410, \"field_mask\":1, \"doc_word_count\":1, \"fields\":[{\
         \"field\":0, \"lcs\":1, \"hit_count\":1, \"word_count\":1, \"tf_idf\":0.125965, \
         \"min_idf\":0.125965, \"max_idf\":0.125965, \"sum_idf\":0.125965, \"min_hit_pos\":2, \
         \"min_best_span_pos\":2, \"exact_hit\":0, \"max_window_hits\":1, \"min_gaps\":0, \
         \"exact_order\":1, \"lccs\":1, \"wlccs\":0.125965, \"atc\":0.000000}], \
         \"words\":[{\"tf\":1, \"idf\":0.125965}]}",
    ),
    (
        "PACKEDFACTORS({no_atc=1})",
        "MATCH('one robots') AND id = 2 OPTION ranker=expr('1')",
        "bm25=567, bm25a=0.557965, field_mask=2, doc_word_count=2, field1=(lcs=1, hit_count=3, \
         word_count=2, tf_idf=0.188947, min_idf=0.062982, max_idf=0.062982, sum_idf=0.125965, \
         min_hit_pos=8, min_best_span_pos=8, exact_hit=0, max_window_hits=1, min_gaps=2, \
         exact_order=1, lccs=1, wlccs=0.062982, atc=0.000000), word0=(tf=1, idf=0.062982), \
         word1=(tf=2, idf=0.062982)",
    ),
    // A row that the query does not match has no factors.
    ("PACKEDFACTORS()", "(MATCH('four') OR id = 1) AND id = 1 OPTION ranker=expr('1')", ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn factors_of_rows_are_told() {
    let server = Server::new();
    let mut session = server.session();
    all(&mut session, &BOOKS).await;
    for (call, behind, expected) in FACTORS {
        let statement = format!("SELECT {call} FROM books WHERE {behind}");
        assert_eq!(sets(&mut session, &statement).await, *expected, "{statement}");
    }
    // Beside weights, in each form once, and ordered by what they are not.
    let both = "SELECT id, WEIGHT() AS w, PACKEDFACTORS() LIKE 'bm25=567, %atc=0.001271%' AS p, \
                FACTORS({no_atc=1}) LIKE '%atc=0.000000%' AS q FROM books \
                WHERE MATCH('one robots') ORDER BY id OPTION ranker=expr('doc_word_count')";
    assert_eq!(sets(&mut session, both).await, "1|2|0|1 2|2|1|1");
    let meta = sets(&mut session, "SHOW META").await;
    let prepare = "PREPARE f FROM 'SELECT PACKEDFACTORS() LIKE ''bm25=%'' FROM books \
                   WHERE MATCH(?) AND id = 2 OPTION ranker=?'";
    all(&mut session, &[prepare, "SET @q = 'robots', @r = 'expr(bm25)', @n = 'bm25'"]).await;
    assert_eq!(sets(&mut session, "EXECUTE f USING @q, @r").await, "1");
    refuse(&mut session, "EXECUTE f USING @q, @n", "say OPTION ranker=expr").await;
    assert_eq!(meta.matches("keyword[").count(), 2, "{meta}");
    for (statement, part) in [
        ("SELECT PACKEDFACTORS() FROM books WHERE MATCH('one')", "say OPTION ranker=expr"),
        (
            "SELECT PACKEDFACTORS() FROM books WHERE MATCH('one') OPTION ranker=bm25",
            "say OPTION ranker=expr",
        ),
        ("SELECT PACKEDFACTORS() FROM books WHERE id = 1", "tells of what WHERE MATCH('…') finds"),
        (
            "SELECT PACKEDFACTORS({zzz=1}) FROM books WHERE MATCH('one') OPTION ranker=expr('1')",
            "unknown option zzz=1 of PACKEDFACTORS()",
        ),
        (
            "SELECT id FROM books WHERE MATCH('one') ORDER BY PACKEDFACTORS() OPTION ranker=expr('1')",
            "PACKEDFACTORS() outside of the select list",
        ),
        ("SELECT PACKEDFACTORS(1) FROM books WHERE MATCH('one')", "error in your SQL syntax"),
    ] {
        refuse(&mut session, statement, part).await;
    }
}

/// Factors of the rows that a limit leaves are those that they have without it, and are made of no others.
#[tokio::test(flavor = "multi_thread")]
async fn factors_are_made_of_rows_that_are_shown_alone() {
    for server in [Server::new(), Server::optimizing()] {
        let mut session = server.session();
        all(
            &mut session,
            &[
                "CREATE TABLE f (id INT PRIMARY KEY, n INT, body TEXT) words='body'",
                "INSERT INTO f SELECT n, n % 7, CONCAT('coral ', REPEAT('reef ', n % 5), IF(n % 3, 'sea', 'fish')) \
                 FROM (WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 300) \
                 SELECT n FROM s) s",
            ],
        )
        .await;
        for order in ["", "ORDER BY n DESC, id", "ORDER BY WEIGHT(), id"] {
            for items in [
                "id, PACKEDFACTORS()",
                "CONCAT(id, ' ', PACKEDFACTORS({json=1})), n",
                "PACKEDFACTORS() AS f, WEIGHT() AS w, FACTORS({no_atc=1}), SNIPPET(body, 'reef')",
            ] {
                let asked = |limit: &str| {
                    format!(
                        "SELECT {items} FROM f WHERE MATCH('reef | fish') {order} {limit} \
                         OPTION ranker=expr('sum(lcs*user_weight)*1000+bm25')"
                    )
                };
                let whole = rows(&mut session, &asked("")).await;
                assert!(whole.lines().count() > 256 && whole.contains("bm25"), "{whole}");
                // The second range is larger than one batch.
                for (skip, take) in [(3, 20), (0, 299)] {
                    let limit = format!("LIMIT {skip}, {take}");
                    let expected: Vec<&str> = whole.lines().skip(skip).take(take).collect();
                    let some = rows(&mut session, &asked(&limit)).await;
                    assert_eq!(some, expected.join("\n"), "{}", asked(&limit));
                }
                let explain = format!("EXPLAIN FORMAT=TREE {}", asked("LIMIT 3, 20"));
                let told = rows(&mut session, &explain).await;
                assert!(told.contains("Excerpts of the rows that are left"), "{told}");
            }
        }
    }
}
