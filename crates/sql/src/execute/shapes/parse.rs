//! Parses a statement's shape from its pieces, by recursive descent. The grammar is in [`super::shape`].

use remora_mysql::{LexMode, Token, TokenKind, unquoted};

use super::{
    lift::Piece,
    shape::{
        ColumnName, Comparison, Condition, Group, Item, JsonKeys, Keywords, Match, MatchOption,
        MatchOptions, OrderBy, Repeated, Select, Shape, Value,
    },
};
use crate::parse::MAX_QUERY_TIME;

/// Words that are not accepted as names; the general path handles them.
const RESERVED: &str = "\
     ALL AND AS ASC BETWEEN BINARY BY CASE CAST COLLATE CONVERT CROSS CURRENT_DATE \
     CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DEFAULT DESC DISTINCT DISTINCTROW DIV ELSE \
     EXCEPT EXISTS FALSE FOR FORCE FROM GROUP HAVING HIGH_PRIORITY IGNORE IN INNER INTERSECT \
     INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT LOCK MATCH MOD NATURAL NOT NULL ON OR \
     ORDER PARTITION PROCEDURE REGEXP RIGHT SELECT STRAIGHT_JOIN TRUE UNION USE WHERE USING \
     WINDOW XOR RLIKE LOCALTIME LOCALTIMESTAMP UTC_DATE UTC_TIME UTC_TIMESTAMP \
     SQL_CALC_FOUND_ROWS VALUES WITH JSON_TABLE";

/// The deepest nesting of a condition.
const MAX_DEPTH: usize = 24;

/// The shape of a statement, if it has one.
pub(super) fn shape(text: &[u8], mode: LexMode, pieces: &[Piece]) -> Option<Shape> {
    let mut parser = Parser::new(text, mode, pieces);
    let select = parser.enclosed_select()?;
    let end = parser.at;
    let (mut times, mut all) = (1, false);
    while parser.word("UNION") {
        let this_all = parser.word("ALL");
        let _ = !this_all && parser.word("DISTINCT");
        if !parser.same(0..end, parser.at) || (times > 1 && this_all != all) {
            return None;
        }
        all = this_all;
        parser.at += end;
        times += 1;
    }
    let plain = times == 1 || select.is_plain();
    let branches = Repeated { times, groups: parser.groups(0..end) };
    (parser.at == pieces.len() && plain).then_some(Shape { select, branches, all })
}

/// The options of the condition's only keyword query.
fn options_of(condition: &mut Condition) -> Option<&mut MatchOptions> {
    match condition {
        Condition::Keywords(keywords) => Some(&mut keywords.options),
        Condition::And(parts) => parts.iter_mut().find_map(options_of),
        _ => None,
    }
}

/// The database, the table, its alias, and the JSON_TABLE that it is joined with.
type Source = (Option<String>, String, Option<String>, Option<JsonKeys>);

pub(super) struct Parser<'a> {
    text: &'a [u8],
    mode: LexMode,
    pieces: &'a [Piece],
    at: usize,
}

impl<'a> Parser<'a> {
    /// Starts at the first piece.
    pub fn new(text: &'a [u8], mode: LexMode, pieces: &'a [Piece]) -> Self {
        Self { text, mode, pieces, at: 0 }
    }
}

impl Parser<'_> {
    /// The number of pieces read.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Skips pieces that were looked at.
    pub fn skip(&mut self, pieces: usize) {
        self.at += pieces;
    }

    /// Whether all pieces were read.
    pub fn at_end(&self) -> bool {
        self.at == self.pieces.len()
    }

    fn enclosed_select(&mut self) -> Option<Select> {
        let enclosed = self.mark("(");
        let select = self.select()?;
        if enclosed {
            self.expect(")")?;
        }
        Some(select)
    }

    fn select(&mut self) -> Option<Select> {
        if !self.word("SELECT") {
            return None;
        }
        let distinct = self.word("DISTINCT");
        let _ = !distinct && (self.word("ALL") || self.word("SQL_NO_CACHE"));
        let mut items = vec![self.item()?];
        while self.mark(",") {
            items.push(self.item()?);
        }
        if !self.word("FROM") {
            return None;
        }
        let (database, table, alias, joined) = self.source()?;
        let mut condition = if self.word("WHERE") { Some(self.any(0)?) } else { None };
        let group = match self.word("GROUP") {
            true if self.word("BY") => Some(self.column()?),
            true => return None,
            false => None,
        };
        let group = match (distinct, items.as_slice(), &group) {
            (false, ..) => group,
            // DISTINCT of a column is the same as GROUP BY it.
            (true, [Item::One(Value::Column(column), _)], None) => Some(column.clone()),
            (true, ..) => return None,
        };
        let order = self.order()?;
        let (limit, offset) = self.limit()?;
        if self.word("OPTION") {
            *options_of(condition.as_mut()?)? = self.options()?;
        }
        Some(Select {
            items,
            database,
            table,
            alias,
            joined,
            condition,
            group,
            order,
            limit,
            offset,
        })
    }

    fn source(&mut self) -> Option<Source> {
        if self.is_call("JSON_TABLE") {
            let keys = self.json_keys()?;
            self.join()?;
            let (database, table, alias) = self.table()?;
            return Some((database, table, alias, Some(self.joined_on(keys)?)));
        }
        let (database, table, alias) = self.table()?;
        if !self.is_word("JOIN") && !self.is_word("INNER") {
            return Some((database, table, alias, None));
        }
        self.join()?;
        let keys = self.json_keys()?;
        Some((database, table, alias, Some(self.joined_on(keys)?)))
    }

    /// The database, the table and its alias.
    pub fn table(&mut self) -> Option<(Option<String>, String, Option<String>)> {
        let first = self.name()?;
        let (database, table) = match self.mark(".") {
            true => (Some(first), self.name()?),
            false => (None, first),
        };
        Some((database, table, self.alias()?))
    }

    fn join(&mut self) -> Option<()> {
        let _ = self.word("INNER");
        self.word("JOIN").then_some(())
    }

    fn json_keys(&mut self) -> Option<JsonKeys> {
        if !self.is_call("JSON_TABLE") {
            return None;
        }
        self.at += 2;
        let array = self.literal()?;
        self.expect(",")?;
        let members = self.literal()?;
        if !self.word("COLUMNS") {
            return None;
        }
        self.expect("(")?;
        let column = self.name()?;
        let bits = [("INT", 32), ("INTEGER", 32), ("BIGINT", 64), ("MEDIUMINT", 24)];
        let (_, bits) = bits.iter().find(|(name, _)| self.word(name))?;
        let half = 1i128 << (bits - 1);
        let range = if self.word("UNSIGNED") { (0, half * 2 - 1) } else { (-half, half - 1) };
        if !self.word("PATH") {
            return None;
        }
        let member = self.literal()?;
        self.expect(")")?;
        self.expect(")")?;
        let alias = self.alias()??;
        let key = ColumnName { table: None, name: String::new(), hidden: None };
        Some(JsonKeys { array, members, member, range, alias, column, key })
    }

    /// `ON` the JSON_TABLE's column equals a column of the table.
    fn joined_on(&mut self, mut keys: JsonKeys) -> Option<JsonKeys> {
        if !self.word("ON") {
            return None;
        }
        let left = self.column()?;
        self.expect("=")?;
        let right = self.column()?;
        let is_keys = |column: &ColumnName| {
            column.table.as_deref() == Some(&keys.alias)
                && column.name.eq_ignore_ascii_case(&keys.column)
        };
        keys.key = match (is_keys(&left), is_keys(&right)) {
            (true, false) => right,
            (false, true) => left,
            _ => return None,
        };
        Some(keys)
    }

    fn item(&mut self) -> Option<Item> {
        if self.mark("*") {
            return Some(Item::Every(None));
        }
        let start = self.at;
        if let Some(table) = self.name()
            && self.mark(".")
            && self.mark("*")
        {
            return Some(Item::Every(Some(table)));
        }
        self.at = start;
        let value = self.value()?;
        let written = self.written(start)?;
        let name = match (self.alias()?, &value) {
            (Some(alias), _) => alias,
            (None, Value::Column(column)) => column.name.clone(),
            // The column's name would contain the literals' text, which is not part of the shape.
            (None, Value::Score(_) | Value::Member { .. }) => return None,
            (None, _) => written,
        };
        Some(Item::One(value, name))
    }

    fn value(&mut self) -> Option<Value> {
        if self.is_call("COUNT") {
            self.at += 2;
            let value = match self.mark("*") {
                true => Value::CountRows,
                false => Value::CountValues(self.column()?),
            };
            self.expect(")")?;
            return Some(value);
        }
        for (name, make) in
            [("MIN", Value::Least as fn(ColumnName) -> Value), ("MAX", Value::Greatest)]
        {
            if self.is_call(name) {
                self.at += 2;
                let column = self.column()?;
                self.expect(")")?;
                return Some(make(column));
            }
        }
        if self.is_match() {
            return Some(Value::Score(self.matching()?));
        }
        if self.is_call("WEIGHT") {
            self.at += 2;
            self.expect(")")?;
            return Some(Value::Weight);
        }
        if self.is_call("JSON_UNQUOTE") {
            self.at += 2;
            let value = self.extracted(true)?;
            self.expect(")")?;
            return Some(value);
        }
        if self.is_call("JSON_EXTRACT") {
            return self.extracted(false);
        }
        let column = self.column()?;
        let is_text = self.mark("->>");
        Some(match is_text || self.mark("->") {
            true => Value::Member { column, path: self.literal()?, is_text },
            false => Value::Column(column),
        })
    }

    /// `JSON_EXTRACT(column, '$.path')`.
    fn extracted(&mut self, is_text: bool) -> Option<Value> {
        if !self.is_call("JSON_EXTRACT") {
            return None;
        }
        self.at += 2;
        let column = self.column()?;
        self.expect(",")?;
        let path = self.literal()?;
        self.expect(")")?;
        Some(Value::Member { column, path, is_text })
    }

    fn order(&mut self) -> Option<Vec<(OrderBy, bool)>> {
        let mut order = Vec::new();
        if !self.word("ORDER") {
            return Some(order);
        }
        if !self.word("BY") {
            return None;
        }
        loop {
            let by = match self.token().filter(|token| token.kind == TokenKind::Integer) {
                Some(number) => {
                    self.at += 1;
                    let digits = std::str::from_utf8(self.bytes(&number)).ok()?;
                    OrderBy::Item(digits.parse().ok()?)
                }
                None => OrderBy::Value(self.value()?),
            };
            let descending = self.word("DESC");
            let _ = !descending && self.word("ASC");
            order.push((by, descending));
            if !self.mark(",") {
                return Some(order);
            }
        }
    }

    fn limit(&mut self) -> Option<(Option<Group>, Option<Group>)> {
        if !self.word("LIMIT") {
            return Some((None, None));
        }
        let first = self.literal()?;
        if self.mark(",") {
            return Some((Some(self.literal()?), Some(first)));
        }
        let offset = if self.word("OFFSET") { Some(self.literal()?) } else { None };
        Some((Some(first), offset))
    }

    fn any(&mut self, depth: usize) -> Option<Condition> {
        let mut parts = Vec::new();
        loop {
            let start = self.at;
            let part = self.all(depth)?;
            let range = start..self.at;
            let times = self.again(&range);
            parts.push(match times {
                1 => part,
                _ => {
                    let groups = self.groups(range);
                    Condition::Again(Box::new(part), Repeated { times, groups })
                }
            });
            if !self.word("OR") {
                break;
            }
        }
        if self.is("||") {
            return None;
        }
        if parts.len() == 1 { parts.pop() } else { Some(Condition::Or(parts)) }
    }

    /// How often the operand of OR just read is repeated; continues after the last repetition.
    fn again(&mut self, range: &std::ops::Range<usize>) -> usize {
        let mut times = 1;
        while self.is_word("OR") && self.same(range.clone(), self.at + 1) {
            let end = self.at + 1 + range.len();
            let behind = Parser { at: end, ..*self };
            if behind.is_word("AND") || behind.is("&&") {
                break;
            }
            self.at = end;
            times += 1;
        }
        times
    }

    /// Whether the pieces from `at` on equal those of the range, apart from their literals.
    fn same(&self, range: std::ops::Range<usize>, at: usize) -> bool {
        let (Some(first), Some(other)) =
            (self.pieces.get(range.clone()), self.pieces.get(at..at + range.len()))
        else {
            return false;
        };
        first.iter().zip(other).all(|pair| match pair {
            (Piece::Token(a), Piece::Token(b)) => {
                a.kind == b.kind && self.bytes(a) == self.bytes(b)
            }
            (Piece::Literal(_), Piece::Literal(_)) => true,
            (Piece::List(_, a), Piece::List(_, b)) => a == b,
            _ => false,
        })
    }

    /// The number of literal groups in the range.
    fn groups(&self, range: std::ops::Range<usize>) -> usize {
        let pieces = self.pieces.get(range).unwrap_or_default();
        pieces.iter().filter(|piece| !matches!(piece, Piece::Token(_))).count()
    }

    fn all(&mut self, depth: usize) -> Option<Condition> {
        let first = self.not(depth)?;
        if !self.is_word("AND") && !self.is("&&") {
            return Some(first);
        }
        let mut parts = vec![first];
        while self.word("AND") || self.mark("&&") {
            parts.push(self.not(depth)?);
        }
        Some(Condition::And(parts))
    }

    fn not(&mut self, depth: usize) -> Option<Condition> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.word("NOT") {
            return Some(Condition::Not(Box::new(self.not(depth + 1)?)));
        }
        let start = self.at;
        if self.mark("(") {
            if let Some(inner) = self.any(depth + 1)
                && self.mark(")")
            {
                return Some(inner);
            }
            self.at = start;
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Option<Condition> {
        if self.is_match() {
            return match self.keywords() {
                Some(keywords) => Some(Condition::Keywords(keywords)),
                None => Some(Condition::Match(self.matching()?)),
            };
        }
        if self.is_call("INSTR") || self.is_call("LOCATE") || self.is_call("POSITION") {
            return self.position();
        }
        if self.is("(") {
            return self.tuple_in();
        }
        if let Some(group) = self.literal() {
            let comparison = self.operator()?;
            return Some(Condition::Compare(self.column()?, comparison.mirrored(), group));
        }
        let column = self.column()?;
        if let Some(comparison) = self.operator() {
            return Some(Condition::Compare(column, comparison, self.literal()?));
        }
        if self.word("IS") {
            let negated = self.word("NOT");
            let condition = self.word("NULL").then_some(Condition::IsNull(column))?;
            return Some(negate_if(negated, condition));
        }
        let negated = self.word("NOT");
        let condition = if self.word("IN") {
            Condition::In(vec![column], self.list(1)?)
        } else if self.word("BETWEEN") {
            let low = self.literal()?;
            if !self.word("AND") {
                return None;
            }
            Condition::Between(column, low, self.literal()?)
        } else if self.word("LIKE") {
            let pattern = self.literal()?;
            if self.is_word("ESCAPE") {
                return None;
            }
            Condition::Like(column, pattern)
        } else {
            return None;
        };
        Some(negate_if(negated, condition))
    }

    /// INSTR, LOCATE or POSITION, compared with 0.
    fn position(&mut self) -> Option<Condition> {
        let instr = self.is_word("INSTR");
        let separator = if self.is_word("POSITION") { None } else { Some(",") };
        self.at += 2;
        let (column, text) = if instr {
            let column = self.column()?;
            self.expect(",")?;
            (column, self.literal()?)
        } else {
            let text = self.literal()?;
            match separator {
                Some(mark) => self.expect(mark)?,
                None if self.word("IN") => {}
                None => return None,
            }
            (self.column()?, text)
        };
        self.expect(")")?;
        if !self.mark(">") {
            return None;
        }
        Some(Condition::Holds(column, text, self.literal()?))
    }

    fn tuple_in(&mut self) -> Option<Condition> {
        self.expect("(")?;
        let mut columns = vec![self.column()?];
        while self.mark(",") {
            columns.push(self.column()?);
        }
        self.expect(")")?;
        let negated = self.word("NOT");
        if !self.word("IN") || columns.len() < 2 {
            return None;
        }
        let list = self.list(columns.len())?;
        Some(negate_if(negated, Condition::In(columns, list)))
    }

    /// A list of tuples of this arity, in parentheses.
    pub fn list(&mut self, wanted: usize) -> Option<Group> {
        self.expect("(")?;
        let Some(Piece::List(group, arity)) = self.pieces.get(self.at).copied() else {
            return None;
        };
        self.at += 1;
        self.expect(")")?;
        (arity == wanted).then_some(group)
    }

    /// `MATCH('query')`; reads nothing if it is MATCH … AGAINST.
    fn keywords(&mut self) -> Option<Keywords> {
        let [_, Piece::Token(open), Piece::Literal(text), ..] = *self.pieces.get(self.at..)? else {
            return None;
        };
        if !open.is(self.text, "(") {
            return None;
        }
        self.at += 3;
        let table = if self.mark(",") { Some(self.name()?) } else { None };
        self.expect(")")?;
        Some(Keywords { text, table, options: Vec::new() })
    }

    /// The options after OPTION.
    fn options(&mut self) -> Option<MatchOptions> {
        let mut options = Vec::new();
        loop {
            let name = self.name()?.to_lowercase();
            // Only the general path enforces this time limit.
            if name == MAX_QUERY_TIME {
                return None;
            }
            self.expect("=")?;
            options.push((name, self.option()?));
            if !self.mark(",") {
                return Some(options);
            }
        }
    }

    fn option(&mut self) -> Option<MatchOption> {
        if let Some(group) = self.literal() {
            return Some(MatchOption::Literal(group));
        }
        if !self.mark("(") {
            let word = self.name()?;
            if !self.mark("(") {
                return Some(MatchOption::Word(word));
            }
            let text = self.literal()?;
            self.expect(")")?;
            return Some(MatchOption::Call(word, text));
        }
        let mut list = Vec::new();
        loop {
            let name = self.name()?;
            self.expect("=")?;
            list.push((name, self.literal()?));
            if !self.mark(",") {
                break;
            }
        }
        self.expect(")")?;
        Some(MatchOption::List(list))
    }

    fn matching(&mut self) -> Option<Match> {
        self.at += 1;
        let enclosed = self.mark("(");
        let mut columns = vec![self.column()?];
        while self.mark(",") {
            columns.push(self.column()?);
        }
        if enclosed {
            self.expect(")")?;
        }
        if !self.word("AGAINST") {
            return None;
        }
        self.expect("(")?;
        let text = self.literal()?;
        let mut boolean = false;
        if self.word("IN") {
            boolean = self.word("BOOLEAN");
            let natural = !boolean && self.word("NATURAL") && self.word("LANGUAGE");
            if !(boolean || natural) || !self.word("MODE") {
                return None;
            }
        }
        self.expect(")")?;
        Some(Match { columns, text, boolean })
    }

    /// A comparison.
    pub fn operator(&mut self) -> Option<Comparison> {
        const OPERATORS: [(&str, Comparison); 7] = [
            ("=", Comparison::Equal),
            ("<>", Comparison::NotEqual),
            ("!=", Comparison::NotEqual),
            ("<", Comparison::Less),
            ("<=", Comparison::LessOrEqual),
            (">", Comparison::Greater),
            (">=", Comparison::GreaterOrEqual),
        ];
        OPERATORS.iter().find(|(mark, _)| self.mark(mark)).map(|(_, comparison)| *comparison)
    }

    /// A column, qualified with its table or not.
    pub fn column(&mut self) -> Option<ColumnName> {
        let mut name = self.name()?;
        let mut table = None;
        if self.mark(".") {
            table = Some(std::mem::replace(&mut name, self.name()?));
        }
        // A third part would mean `database.table.column`.
        (!self.is(".") && !self.is("(")).then_some(ColumnName { table, name, hidden: None })
    }

    /// An alias, if there is one. The outer `None` means that something else follows the value.
    pub fn alias(&mut self) -> Option<Option<String>> {
        if self.word("AS") {
            return Some(Some(self.name()?));
        }
        if self.token().is_some_and(|token| token.kind == TokenKind::Quoted) {
            return Some(Some(self.name()?));
        }
        match self.token() {
            Some(token) if token.kind == TokenKind::Word && !self.is_reserved(&token) => {
                Some(Some(self.name()?))
            }
            _ => Some(None),
        }
    }

    fn name(&mut self) -> Option<String> {
        let token = self.token()?;
        let bytes = self.bytes(&token);
        let name = match token.kind {
            TokenKind::Quoted => String::from_utf8(unquoted(bytes, self.mode)).ok()?,
            TokenKind::Word if !self.is_reserved(&token) => {
                std::str::from_utf8(bytes).ok()?.to_owned()
            }
            _ => return None,
        };
        self.at += 1;
        Some(name)
    }

    /// Whether the word is not accepted as a name; the general path handles all of them.
    fn is_reserved(&self, token: &Token) -> bool {
        let bytes = self.bytes(token);
        RESERVED.split_ascii_whitespace().any(|word| bytes.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The text from a piece up to the last piece read.
    pub fn written(&self, start: usize) -> Option<String> {
        let first = self.pieces.get(start)?;
        let last = self.pieces.get(self.at.checked_sub(1)?)?;
        let (Piece::Token(first), Piece::Token(last)) = (first, last) else {
            return Some(String::new());
        };
        let bytes = self.text.get(first.start..last.end)?;
        Some(std::str::from_utf8(bytes).ok()?.to_owned())
    }

    /// A literal.
    pub fn literal(&mut self) -> Option<Group> {
        let Some(Piece::Literal(group)) = self.pieces.get(self.at).copied() else { return None };
        self.at += 1;
        Some(group)
    }

    /// Whether a call of this function begins here.
    pub fn is_call(&self, name: &str) -> bool {
        let open = self.pieces.get(self.at + 1);
        let open = matches!(open, Some(Piece::Token(token)) if token.is(self.text, "("));
        open && self.is_word(name)
    }

    fn is_match(&self) -> bool {
        self.is_word("MATCH")
    }

    fn token(&self) -> Option<Token> {
        match self.pieces.get(self.at)? {
            Piece::Token(token) => Some(*token),
            _ => None,
        }
    }

    fn bytes(&self, token: &Token) -> &[u8] {
        token.bytes(self.text)
    }

    fn is_word(&self, word: &str) -> bool {
        self.token().is_some_and(|token| token.is_word(self.text, word))
    }

    /// Whether this mark is next.
    pub fn is(&self, mark: &str) -> bool {
        self.token().is_some_and(|token| token.is(self.text, mark))
    }

    /// Consumes this word if it is next.
    pub fn word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    /// Consumes this mark if it is next.
    pub fn mark(&mut self, mark: &str) -> bool {
        let is = self.is(mark);
        self.at += usize::from(is);
        is
    }

    /// Consumes this mark; `None` if it is not next.
    pub fn expect(&mut self, mark: &str) -> Option<()> {
        self.mark(mark).then_some(())
    }
}

fn negate_if(negated: bool, condition: Condition) -> Condition {
    if negated { Condition::Not(Box::new(condition)) } else { condition }
}
