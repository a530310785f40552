//! Statements that grow: each shape is a way to write a statement of any size that may cost the
//! server more than the length of its text suggests.

/// A way to write a statement of any size.
pub struct Shape {
    /// The name of the shape: the part that is repeated.
    pub name: String,
    text: Box<dyn Fn(usize) -> String>,
}

impl Shape {
    pub(super) fn new(name: impl Into<String>, text: impl Fn(usize) -> String + 'static) -> Self {
        Self { name: name.into(), text: Box::new(text) }
    }

    /// The statement of this size.
    pub fn statement(&self, size: usize) -> String {
        (self.text)(size)
    }
}

/// The tables of the shapes, each with few rows.
pub const TABLES: [&str; 4] = [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, v VARCHAR(100), x TEXT, j JSON, d DATETIME, \
     KEY (a), FULLTEXT (x))",
    "INSERT INTO t VALUES (1, 1, 1, 'one', 'a text of one', '{\"k\": [1]}', '2020-01-01'), \
     (2, 2, NULL, 'two', 'a text of two', '[1, 2]', '2021-01-01'), (3, 3, 3, NULL, NULL, NULL, NULL)",
    "CREATE TABLE u (id INT PRIMARY KEY, a INT, v VARCHAR(100))",
    "INSERT INTO u VALUES (1, 1, 'one'), (2, 5, 'two')",
];

/// Functions and forms around `@`, to be nested.
pub(super) const NESTED: [&str; 87] = [
    "(@)",
    "-(@)",
    "~(@)",
    "!(@)",
    "NOT (@)",
    "+(@)",
    "(@) IS NULL",
    "(@) IS NOT TRUE",
    "(@) + 1",
    "1 + (@)",
    "(@) = 1",
    "1 = (@)",
    "(@) <=> 1",
    "(@) LIKE 'a'",
    "(@) REGEXP 'a'",
    "(@) IN (1, 2)",
    "1 IN (@, 2)",
    "(@) BETWEEN 1 AND 2",
    "1 BETWEEN (@) AND 2",
    "(@) AND 1",
    "1 OR (@)",
    "(@) XOR 1",
    "(@) DIV 2",
    "(@) COLLATE utf8mb4_bin",
    "BINARY (@)",
    "CAST(@ AS CHAR)",
    "CAST(@ AS SIGNED)",
    "CAST(@ AS JSON)",
    "CAST(@ AS DECIMAL(10,2))",
    "CONVERT(@, CHAR)",
    "CONVERT(@ USING utf8mb4)",
    "CASE WHEN @ THEN 1 ELSE 2 END",
    "CASE @ WHEN 1 THEN 2 END",
    "CASE WHEN 1 THEN @ END",
    "IF(@, 1, 2)",
    "IF(1, @, 2)",
    "IFNULL(@, 1)",
    "NULLIF(@, 1)",
    "COALESCE(@, 1)",
    "COALESCE(1, @)",
    "GREATEST(@, 1)",
    "LEAST(1, @)",
    "CONCAT(@, 'a')",
    "CONCAT_WS(',', @, 'a')",
    "SUBSTRING(@, 1, 2)",
    "SUBSTRING(@ FROM 1 FOR 2)",
    "SUBSTR(@, 1)",
    "LEFT(@, 1)",
    "RIGHT(@, 1)",
    "MID(@, 1, 1)",
    "TRIM(@)",
    "TRIM(LEADING 'a' FROM @)",
    "LTRIM(@)",
    "UPPER(@)",
    "LOWER(@)",
    "REPLACE(@, 'a', 'b')",
    "REVERSE(@)",
    "LPAD(@, 5, 'x')",
    "HEX(@)",
    "UNHEX(@)",
    "MD5(@)",
    "SHA2(@, 256)",
    "CHAR(@ USING utf8mb4)",
    "ASCII(@)",
    "LENGTH(@)",
    "LOCATE('a', @)",
    "POSITION('a' IN @)",
    "INSTR(@, 'a')",
    "ELT(1, @)",
    "FIELD(@, 1)",
    "FORMAT(@, 2)",
    "ABS(@)",
    "ROUND(@, 1)",
    "FLOOR(@)",
    "MOD(@, 2)",
    "POW(@, 1)",
    "JSON_ARRAY(@)",
    "JSON_OBJECT('k', @)",
    "JSON_EXTRACT(@, '$')",
    "JSON_SET('{}', '$.a', @)",
    "JSON_QUOTE(@)",
    "DATE_ADD(@, INTERVAL 1 DAY)",
    "'2020-01-01' + INTERVAL (@) DAY",
    "EXTRACT(DAY FROM @)",
    "DATE(@)",
    "DATE_FORMAT(@, '%Y')",
    "(SELECT @)",
];

/// Operators, to be chained.
pub(super) const CHAINED: [&str; 27] = [
    "= ALL (SELECT 1) +",
    "NOT IN (SELECT 1) +",
    "+",
    "-",
    "*",
    "/",
    "%",
    "DIV",
    "MOD",
    "||",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "=",
    "<=>",
    "<>",
    "<",
    ">=",
    "AND",
    "OR",
    "XOR",
    "LIKE",
    "COLLATE utf8mb4_bin =",
    "IS NULL +",
    "NOT IN (1) +",
];

/// List items, joined by commas: text before, item (`#` is its number), text after.
const LISTED: [(&str, &str, &str); 40] = [
    ("SELECT ", "1", ""),
    ("SELECT ", "#", ""),
    ("SELECT ", "'text #'", ""),
    ("SELECT ", "a", " FROM t"),
    ("SELECT ", "a AS `a#`", " FROM t"),
    ("SELECT ", "t.*", " FROM t"),
    ("SELECT ", "a + #", " FROM t"),
    ("SELECT ", "(SELECT #)", ""),
    ("SELECT ", "COUNT(*)", " FROM t"),
    ("SELECT ", "SUM(a + #)", " FROM t"),
    ("SELECT ", "RANK() OVER (ORDER BY a + #)", " FROM t"),
    ("SELECT ", "@v#", ""),
    ("SELECT ", "@v# := #", ""),
    ("SELECT ", "@@version", ""),
    ("SELECT * FROM t WHERE a IN (", "#", ")"),
    ("SELECT * FROM t WHERE b IN (", "#", ")"),
    ("SELECT * FROM t WHERE v IN (", "'#'", ")"),
    ("SELECT * FROM t WHERE a IN (", "a + #", ")"),
    ("SELECT * FROM t WHERE (a, b) IN (", "(#, #)", ")"),
    ("SELECT * FROM t WHERE a NOT IN (", "#", ")"),
    ("SELECT COALESCE(", "NULL", ")"),
    ("SELECT CONCAT(", "'#'", ")"),
    ("SELECT GREATEST(", "#", ")"),
    ("SELECT FIELD('x', ", "'#'", ")"),
    ("SELECT JSON_ARRAY(", "#", ")"),
    ("SELECT JSON_OBJECT(", "'#', #", ")"),
    ("SELECT CHAR(", "#", ")"),
    ("SELECT a FROM t GROUP BY ", "a + #", ""),
    ("SELECT a FROM t ORDER BY ", "a + #", ""),
    ("SELECT a FROM t ORDER BY ", "1", ""),
    ("SELECT * FROM ", "(SELECT #) AS d#", ""),
    ("SELECT 1 FROM ", "t AS t#", " WHERE t1.id = 0"),
    ("VALUES ", "ROW(#, 'x')", ""),
    ("INSERT INTO u (id) VALUES ", "(1)", ""),
    ("INSERT IGNORE INTO u VALUES ", "(1, #, 'x')", ""),
    ("UPDATE u SET ", "a = #", " WHERE id = 7"),
    ("SET ", "@v# = #", ""),
    ("DROP TABLE IF EXISTS ", "gone#", ""),
    ("SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (", "c# INT PATH '$'", ")) AS j"),
    ("WITH ", "c# AS (SELECT #)", " SELECT 1"),
];

/// Repeated pieces: text before, piece, text after.
const REPEATED: [(&str, &str, &str); 44] = [
    ("SELECT 1", " UNION SELECT #", ""),
    ("SELECT 1", " UNION ALL SELECT #", ""),
    ("SELECT a FROM t", " UNION ALL SELECT a FROM t", ""),
    ("SELECT 1", " INTERSECT SELECT 1", ""),
    ("SELECT 1", " EXCEPT SELECT #", ""),
    ("SELECT 1 FROM t", " JOIN t AS t# USING (id)", ""),
    ("SELECT 1 FROM t", " LEFT JOIN t AS t# ON t#.id = t.id", ""),
    ("SELECT 1 FROM t", " NATURAL JOIN (SELECT id FROM u) AS t#", ""),
    ("SELECT * FROM t WHERE 1", " AND a > #", ""),
    ("SELECT * FROM t WHERE 0", " OR a = #", ""),
    ("SELECT * FROM t WHERE 0", " OR v = '#'", ""),
    ("SELECT * FROM t WHERE 0", " OR v LIKE '%#%'", ""),
    ("SELECT * FROM t WHERE 0", " OR x LIKE '%#%'", ""),
    ("SELECT * FROM t WHERE 0", " OR (a = # AND b = #)", ""),
    ("SELECT * FROM t WHERE 1", " AND (a = # OR b = #)", ""),
    ("SELECT * FROM t WHERE 1", " AND EXISTS (SELECT 1 FROM u WHERE u.id = t.id)", ""),
    ("SELECT * FROM t WHERE 1", " AND a IN (SELECT a FROM u)", ""),
    ("SELECT * FROM t WHERE 1", " AND NOT a <=> #", ""),
    ("SELECT CASE a", " WHEN # THEN #", " END FROM t"),
    ("SELECT CASE", " WHEN a = # THEN 'x#'", " END FROM t"),
    ("SELECT * FROM t WHERE MATCH (x) AGAINST ('", "word# ", "')"),
    ("SELECT * FROM t WHERE MATCH (x) AGAINST ('", "+word# ", "' IN BOOLEAN MODE)"),
    ("SELECT * FROM t WHERE MATCH (x) AGAINST ('", "(", "' IN BOOLEAN MODE)"),
    ("SELECT * FROM t WHERE MATCH (x) AGAINST ('\"", "a ", "\"' IN BOOLEAN MODE)"),
    ("SELECT * FROM t WHERE MATCH (x) AGAINST ('", "a* ", "' IN BOOLEAN MODE)"),
    ("SELECT * FROM t WHERE x LIKE '", "%a_", "'"),
    ("SELECT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' LIKE '", "%a", "b'"),
    ("SELECT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' REGEXP '", "(a*)*", "b'"),
    ("SELECT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' REGEXP '", "(", "'"),
    ("SELECT REGEXP_REPLACE('aaaa', '", "a?", "', 'b')"),
    ("SELECT JSON_EXTRACT('[]', '$", "[*]", "')"),
    ("SELECT JSON_EXTRACT('{}', '$", ".k#", "')"),
    ("SELECT JSON_EXTRACT('[[[[[[[[1]]]]]]]]', '$", "**[0]", "')"),
    ("SELECT JSON_VALID('", "[", "')"),
    ("SELECT CAST('[", "1,", "1]' AS JSON)"),
    ("SELECT JSON_MERGE_PATCH('{}', '{", "\"k#\":1,", "\"z\":1}')"),
    ("SELECT '", "letters ", "'"),
    ("SELECT `", "a", "` FROM t"),
    ("SELECT 0x", "ab", ""),
    ("SELECT 1", "0", ""),
    ("SELECT 0.", "1", ""),
    ("SELECT ", "/* a comment */ ", "1"),
    ("SELECT ", "'a' ", ""),
    ("DO 1", "; DO #", ""),
];

/// All shapes.
pub fn all() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for form in NESTED {
        shapes.push(Shape::new(format!("nested {form}"), move |size| {
            format!("SELECT {}", nest(form, "1", size))
        }));
        shapes.push(Shape::new(format!("nested {form} of a column"), move |size| {
            format!("SELECT * FROM t WHERE {}", nest(form, "a", size))
        }));
    }
    for operator in CHAINED {
        shapes.push(Shape::new(format!("chain of {operator}"), move |size| {
            format!("SELECT 1{}", format!(" {operator} 1").repeat(size))
        }));
        shapes.push(Shape::new(format!("chain of {operator} over columns"), move |size| {
            format!("SELECT a{} FROM t", format!(" {operator} b").repeat(size))
        }));
    }
    for (before, item, after) in LISTED {
        shapes.push(Shape::new(format!("{before}{item}, …{after}"), move |size| {
            let items: Vec<String> = (1..=size.max(1)).map(|at| numbered(item, at)).collect();
            format!("{before}{}{after}", items.join(", "))
        }));
    }
    for (before, piece, after) in REPEATED {
        shapes.push(Shape::new(format!("{before}{piece}…{after}"), move |size| {
            let pieces: String = (1..=size).map(|at| numbered(piece, at)).collect();
            format!("{before}{pieces}{after}")
        }));
    }
    shapes.extend(queries());
    shapes.extend(growing());
    shapes.extend(definitions());
    shapes
}

/// Nested queries: the form, and the innermost query.
const WITHIN: [(&str, &str); 9] = [
    ("SELECT * FROM (@) AS d#", "SELECT * FROM t"),
    ("(@)", "SELECT 1"),
    ("SELECT (@)", "SELECT 1"),
    ("SELECT 1 FROM t AS t# WHERE EXISTS (@)", "SELECT 1"),
    ("SELECT a FROM t WHERE a IN (@)", "SELECT 1"),
    ("SELECT 1 FROM t AS t# WHERE t#.a = 1 AND EXISTS (@)", "SELECT 1 FROM u WHERE u.a = 1"),
    ("(@) UNION SELECT #", "SELECT 1"),
    ("WITH c# AS (@) SELECT * FROM c#", "SELECT 1"),
    ("SELECT d#.* FROM t, LATERAL (@) AS d#", "SELECT 1"),
];

/// Common table expressions that each read the previous one.
const CHAINS: [(&str, &str); 3] = [
    ("united", "SELECT a FROM @ UNION ALL SELECT a FROM @"),
    ("joined", "SELECT x.a FROM @ AS x JOIN @ AS y ON x.a = y.a"),
    ("read once", "SELECT a FROM @"),
];

/// Nested queries.
fn queries() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (form, inner) in WITHIN {
        shapes.push(Shape::new(format!("{form} within itself"), move |size| {
            numbered_nest(form, inner, size)
        }));
    }
    for (name, step) in CHAINS {
        shapes.push(Shape::new(format!("common table expressions, {name}"), move |size| {
            let step = |at: usize| {
                let query = step.replace('@', &format!("c{}", at - 1));
                format!(", c{at} AS ({query})")
            };
            let steps: String = (1..=size).map(step).collect();
            format!("WITH c0 AS (SELECT 1 AS a){steps} SELECT COUNT(*) FROM c{size}")
        }));
    }
    shapes
}

/// Short texts that ask for large results.
fn growing() -> Vec<Shape> {
    vec![
        Shape::new("a recursive CTE of so many rounds", |size| {
            format!(
                "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < {size}) \
                 SELECT COUNT(*) FROM r"
            )
        }),
        Shape::new("a recursive CTE that doubles", |size| {
            format!(
                "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, (SELECT 1 UNION \
                 ALL SELECT 2) AS two WHERE n < {}) SELECT COUNT(*) FROM r",
                size.ilog2() + 1
            )
        }),
        Shape::new("REPEAT", |size| format!("SELECT LENGTH(REPEAT('a', {size}000))")),
        Shape::new("REPEAT of REPEAT", |size| {
            format!("SELECT LENGTH(REPEAT(REPEAT('a', {size}), {size}))")
        }),
        Shape::new("SPACE, a row each", |size| {
            format!("SELECT SUM(LENGTH(CONCAT(SPACE({size}0), a))) FROM t")
        }),
        Shape::new("REPLACE that grows", |size| {
            format!("SELECT LENGTH({})", nest("REPLACE(@, 'a', 'aaaa')", "'a'", size.min(60)))
        }),
        Shape::new("GROUP_CONCAT of long texts", |size| {
            format!("SELECT LENGTH(GROUP_CONCAT(REPEAT('a', {size}00))) FROM t")
        }),
        Shape::new("a long text cut in words", |size| {
            format!("SELECT * FROM t WHERE x LIKE '%{}%'", "word ".repeat(size))
        }),
        Shape::new("EXPLAIN of many conditions", |size| {
            format!("EXPLAIN SELECT * FROM t WHERE a = 1{}", " OR b = 2".repeat(size))
        }),
        Shape::new("rows compared", |size| {
            let row: Vec<String> = (1..=size.max(2)).map(|at| at.to_string()).collect();
            let row = row.join(", ");
            format!("SELECT ({row}) < ({row})")
        }),
        Shape::new("rows of columns compared", |size| {
            let row = vec!["a"; size.max(2)].join(", ");
            format!("SELECT 1 FROM t WHERE ({row}) <= ({row})")
        }),
    ]
}

/// Oversized definitions.
fn definitions() -> Vec<Shape> {
    let columns = |size: usize| -> String { (1..=size).map(|at| format!(", c{at} INT")).collect() };
    vec![
        Shape::new("CREATE TABLE of many columns", move |size| {
            format!("CREATE TEMPORARY TABLE IF NOT EXISTS m (id INT PRIMARY KEY{})", columns(size))
        }),
        Shape::new("CREATE TABLE of many keys", |size| {
            let keys: String = (1..=size).map(|at| format!(", KEY k{at} (a)")).collect();
            format!("CREATE TEMPORARY TABLE IF NOT EXISTS m (id INT PRIMARY KEY, a INT{keys})")
        }),
        Shape::new("an ENUM of many members", |size| {
            let members: Vec<String> = (1..=size.max(1)).map(|at| format!("'m{at}'")).collect();
            format!(
                "CREATE TEMPORARY TABLE IF NOT EXISTS m (id INT PRIMARY KEY, e ENUM({}))",
                members.join(",")
            )
        }),
        Shape::new("a deep CHECK", |size| {
            format!(
                "CREATE TEMPORARY TABLE IF NOT EXISTS m (id INT PRIMARY KEY, CHECK ({}))",
                nest("(@) + 1", "id", size)
            )
        }),
        Shape::new("a deep DEFAULT", |size| {
            format!(
                "CREATE TEMPORARY TABLE IF NOT EXISTS m (id INT PRIMARY KEY, a INT DEFAULT ({}))",
                nest("COALESCE(@, 1)", "1", size)
            )
        }),
        Shape::new("a deep generated column", |size| {
            format!(
                "CREATE TEMPORARY TABLE IF NOT EXISTS m (id INT PRIMARY KEY, a INT AS ({}))",
                nest("IF(@, 1, 2)", "id", size)
            )
        }),
        Shape::new("CREATE TABLE of many partitions", |size| {
            let parts: Vec<String> = (1..=size.max(1))
                .map(|at| format!("PARTITION p{at} VALUES LESS THAN ({at})"))
                .collect();
            format!(
                "CREATE TEMPORARY TABLE IF NOT EXISTS m (id INT PRIMARY KEY) PARTITION BY RANGE (id) ({})",
                parts.join(",")
            )
        }),
        Shape::new("ALTER TABLE of many parts", |size| {
            let parts: Vec<String> =
                (1..=size.max(1)).map(|at| format!("ALTER COLUMN a SET DEFAULT {at}")).collect();
            format!("ALTER TABLE u {}", parts.join(", "))
        }),
        Shape::new("PREPARE with many places", |size| {
            let places = vec!["?"; size.max(1)].join(",");
            format!("PREPARE p FROM 'SELECT * FROM t WHERE a IN ({places})'")
        }),
        Shape::new("PREPARE with many selected places", |size| {
            format!("PREPARE p FROM 'SELECT {}'", vec!["?"; size.max(1)].join(","))
        }),
        Shape::new("a name of many parts", |size| format!("SELECT a{} FROM t", ".a".repeat(size))),
        Shape::new("a long name", |size| format!("CREATE TABLE {} (a INT)", "a".repeat(size))),
    ]
}

/// The form nested `times` times.
fn nest(form: &str, inner: &str, times: usize) -> String {
    let (before, after) = form.split_once('@').unwrap_or((form, ""));
    format!("{}{inner}{}", before.repeat(times), after.repeat(times))
}

/// Like [`nest`], with `#` as the depth.
fn numbered_nest(form: &str, inner: &str, times: usize) -> String {
    let (before, after) = form.split_once('@').unwrap_or((form, ""));
    let befores: String = (1..=times).rev().map(|at| numbered(before, at)).collect();
    let afters: String = (1..=times).map(|at| numbered(after, at)).collect();
    format!("{befores}{inner}{afters}")
}

pub(super) fn numbered(piece: &str, number: usize) -> String {
    piece.replace('#', &number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_many_and_grow() {
        let shapes = all();
        assert!(shapes.len() >= 200, "{}", shapes.len());
        for shape in &shapes {
            let (small, large) = (shape.statement(2), shape.statement(40));
            assert!(large.len() >= small.len() && large != small, "{}", shape.name);
        }
    }

    #[test]
    fn pieces_are_numbered() {
        let form = "SELECT * FROM (@) AS d#";
        assert_eq!(numbered_nest(form, "t", 2), "SELECT * FROM (SELECT * FROM (t) AS d1) AS d2");
        assert_eq!(nest("-(@)", "1", 2), "-(-(1))");
    }
}
