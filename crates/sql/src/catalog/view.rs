//! Views: the clauses around their SELECT, and where they are stored.
//!
//! ```text
//! view := ["OR" "REPLACE"] ["ALGORITHM" "=" word] ["DEFINER" "=" user] ["SQL" "SECURITY" word]
//!         "VIEW" ["IF" "NOT" "EXISTS"] name ["(" column ("," column)* ")"] "AS" select
//!         ["WITH" ["CASCADED" | "LOCAL"] "CHECK" "OPTION"]
//! ```
//!
//! A view is stored as a position, under a source name that begins with `#view.`, in the same commits as table
//! definitions.

use std::ops::Range;

use remora_engine::DeclaredView;
use remora_mysql::{Collation, ErrorCode, TokenKind};

use super::{Reader, TableName, quoted_name};
use crate::{
    Error, Result,
    identity::STORED_POINT,
    parse::{Tokens, read},
};

/// A view's definition without its SELECT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViewHead {
    /// OR REPLACE.
    pub replaces: bool,
    /// IF NOT EXISTS.
    pub lenient: bool,
    /// UNDEFINED, MERGE or TEMPTABLE: stored, without effect.
    pub algorithm: Option<&'static str>,
    /// The definer's user and host; `None` for the user who creates the view.
    pub definer: Option<(String, String)>,
    /// DEFINER or INVOKER: stored, but readers always need their own rights.
    pub security: Option<&'static str>,
    /// Its name, with the database if one is given.
    pub name: (Option<String>, String),
    /// The names of its columns, if they are listed.
    pub columns: Vec<String>,
    /// CASCADED or LOCAL.
    pub check: Option<&'static str>,
}

/// A stored view.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Its name.
    pub name: TableName,
    /// The text of its SELECT, in the default `sql_mode`.
    pub select: String,
    /// The rest of its definition.
    pub head: ViewHead,
    /// The stored declaration.
    pub declared: DeclaredView,
}

const ALGORITHMS: [&str; 3] = ["UNDEFINED", "MERGE", "TEMPTABLE"];
const SECURITIES: [&str; 2] = ["DEFINER", "INVOKER"];

impl ViewHead {
    /// Whether a view's definition follows, after CREATE or ALTER.
    pub(crate) fn is_next(tokens: &Tokens<'_>) -> bool {
        let mut ahead = *tokens;
        ahead.accept_all("OR REPLACE");
        let words = ["VIEW", "ALGORITHM", "DEFINER", "SQL"];
        words.iter().any(|word| ahead.is_word(word)) && Self::read_options(&mut ahead).is_ok()
    }

    /// Parses a definition after CREATE or ALTER. Also returns the tokens of the SELECT.
    pub(crate) fn read(tokens: &mut Tokens<'_>) -> Result<(Self, Range<usize>)> {
        let replaces = tokens.accept_all("OR REPLACE");
        let mut head = Self { replaces, ..Self::read_options(tokens)? };
        head.lenient = tokens.accept_all("IF NOT EXISTS");
        let first = tokens.name()?;
        head.name = match tokens.take(".") {
            true => (Some(first), tokens.name()?),
            false => (None, first),
        };
        if tokens.take("(") {
            head.columns.push(tokens.name()?);
            while tokens.take(",") {
                head.columns.push(tokens.name()?);
            }
            tokens.need(")")?;
        }
        tokens.expect("AS")?;
        let select = tokens.skip_until(|tokens| {
            let mut ahead = *tokens;
            read_check(&mut ahead).is_some()
        })?;
        if select.is_empty() {
            return Err(tokens.syntax_error());
        }
        head.check = read_check(tokens);
        tokens.expect_end()?;
        Ok((head, select))
    }

    /// Parses the clauses before the name.
    fn read_options(tokens: &mut Tokens<'_>) -> Result<Self> {
        let one_of = |tokens: &mut Tokens<'_>, words: &[&'static str]| {
            let found = words.iter().find(|word| tokens.accept(word)).copied();
            found.ok_or_else(|| tokens.syntax_error())
        };
        let mut head = Self::default();
        if tokens.accept("ALGORITHM") {
            tokens.need("=")?;
            head.algorithm = Some(one_of(tokens, &ALGORITHMS)?);
        }
        if tokens.accept("DEFINER") {
            tokens.need("=")?;
            head.definer = read_user(tokens)?;
        }
        if tokens.accept_all("SQL SECURITY") {
            head.security = Some(one_of(tokens, &SECURITIES)?);
        }
        tokens.expect("VIEW")?;
        Ok(head)
    }

    /// The whole statement as SHOW CREATE VIEW prints it when `database` is the current one.
    pub(crate) fn written(&self, name: &TableName, select: &str, database: Option<&str>) -> String {
        let (user, host) = self.definer.clone().unwrap_or_default();
        let mut called = quoted_name(&name.table);
        if database != Some(name.database.as_str()) {
            called = format!("{}.{called}", quoted_name(&name.database));
        }
        let columns: Vec<String> = self.columns.iter().map(|name| quoted_name(name)).collect();
        let columns = match columns.is_empty() {
            true => String::new(),
            false => format!(" ({})", columns.join(",")),
        };
        let check = self.check.map_or_else(String::new, |it| format!(" WITH {it} CHECK OPTION"));
        format!(
            "CREATE ALGORITHM={} DEFINER={}@{} SQL SECURITY {} VIEW {called}{columns} AS {select}{check}",
            self.algorithm.unwrap_or("UNDEFINED"),
            quoted_name(&user),
            quoted_name(&host),
            self.security.unwrap_or("DEFINER"),
        )
    }
}

/// `WITH [CASCADED | LOCAL] CHECK OPTION`.
fn read_check(tokens: &mut Tokens<'_>) -> Option<&'static str> {
    let forms = [
        ("WITH CHECK OPTION", "CASCADED"),
        ("WITH CASCADED CHECK OPTION", "CASCADED"),
        ("WITH LOCAL CHECK OPTION", "LOCAL"),
    ];
    forms.into_iter().find(|(words, _)| tokens.accept_all(words)).map(|(_, meant)| meant)
}

/// Parses a user with a host; `None` for the current user.
fn read_user(tokens: &mut Tokens<'_>) -> Result<Option<(String, String)>> {
    if tokens.accept("CURRENT_USER") {
        if tokens.take("(") {
            tokens.need(")")?;
        }
        return Ok(None);
    }
    let user = if tokens.is_text() { tokens.utf8()? } else { tokens.name()? };
    let host = match tokens.peek() {
        Some(token) if token.kind == TokenKind::UserVariable => {
            tokens.next();
            tokens.variable_name(token)
        }
        _ => "%".to_owned(),
    };
    Ok(Some((user, host)))
}

impl View {
    /// The view of this name, if there is one; error 1356 if its stored declaration cannot be parsed.
    pub(crate) fn find(reader: &Reader, name: &TableName) -> Result<Option<Self>> {
        let kept = reader.sources().get(&position(name));
        kept.map(|kept| Self::read(name, kept)).transpose()
    }

    /// Whether a view of this name exists.
    pub(crate) fn is_there(reader: &Reader, name: &TableName) -> bool {
        Self::kept(reader, name).is_some()
    }

    /// The stored declaration of the view of this name.
    pub(crate) fn kept<'r>(reader: &'r Reader, name: &TableName) -> Option<&'r str> {
        reader.sources().get(&position(name))
    }

    /// The names of all views.
    pub(crate) fn names(reader: &Reader) -> impl Iterator<Item = TableName> {
        let positions = reader.sources().iter();
        positions.filter_map(|(position, _)| named(DeclaredView::name_of(position)?))
    }

    /// Whether there are any views.
    pub(crate) fn are_there(reader: &Reader) -> bool {
        reader.sources().iter().any(|(position, _)| DeclaredView::name_of(position).is_some())
    }

    fn read(name: &TableName, kept: &str) -> Result<Self> {
        let unread = || {
            let message = format!("What is kept of the view '{name}' is not understood");
            Error::new(ErrorCode::ViewInvalid, message)
        };
        let declared = DeclaredView::read(kept).ok_or_else(unread)?;
        if let Some(reason) = &declared.refused {
            let message = format!("The view '{name}' cannot be read here: {reason}");
            return Err(Error::new(ErrorCode::ViewInvalid, message));
        }
        let (head, select) = read(&declared.statement, |tokens| {
            tokens.expect("CREATE")?;
            let (head, select) = ViewHead::read(tokens)?;
            Ok((head, tokens.shown(select)))
        })
        .map_err(|_| unread())?;
        Ok(Self { name: name.clone(), select, head, declared })
    }

    /// A view that is created in a session with these variables.
    pub(crate) fn new(
        name: TableName,
        head: ViewHead,
        select: String,
        (client, connection): (String, Collation),
    ) -> Self {
        let declared = DeclaredView {
            statement: head.written(&name, &select, None),
            character_set_client: client,
            collation_connection: connection.name().to_owned(),
            source: None,
            refused: None,
        };
        Self { name, select, head, declared }
    }

    /// The same view under another name.
    pub(crate) fn renamed(self, name: TableName) -> Self {
        let statement = self.head.written(&name, &self.select, None);
        Self { name, declared: DeclaredView { statement, ..self.declared }, ..self }
    }

    /// The position and the value that store it.
    pub(crate) fn to_keep(&self) -> (String, String) {
        (position(&self.name), self.declared.written())
    }

    /// The position and the value that delete the view of this name.
    pub(crate) fn to_forget(name: &TableName) -> (String, String) {
        (position(name), String::new())
    }
}

fn position(name: &TableName) -> String {
    let database = name.database.replace('.', STORED_POINT);
    DeclaredView::position(&format!("{database}.{}", name.table))
}

fn named(stored: &str) -> Option<TableName> {
    let (database, table) = stored.split_once('.')?;
    Some(TableName::new(database.replace(STORED_POINT, "."), table))
}

/// Error 1347 for a table in place of a view.
pub(crate) fn not_a_view(name: &TableName) -> Error {
    Error::new(ErrorCode::WrongObject, format!("'{name}' is not VIEW"))
}

/// Error 1347 for a view in place of a table.
pub(crate) fn not_a_table(name: &TableName) -> Error {
    Error::new(ErrorCode::WrongObject, format!("'{name}' is not BASE TABLE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_written_as_they_were_read() {
        for statement in [
            "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `shop`.`v` AS select 1 AS `1`",
            "CREATE ALGORITHM=MERGE DEFINER=`a``b`@`h` SQL SECURITY INVOKER VIEW `shop`.`v` (`x`,`y`) AS \
             (with `c` as (select 1) select * from `c`) WITH LOCAL CHECK OPTION",
        ] {
            let (head, select) = read(statement, |tokens| {
                tokens.expect("CREATE")?;
                assert!(ViewHead::is_next(tokens));
                let (head, select) = ViewHead::read(tokens)?;
                Ok((head, tokens.shown(select)))
            })
            .unwrap();
            let (database, table) = head.name.clone();
            let name = TableName::new(database.unwrap(), table);
            assert_eq!(head.written(&name, &select, None), statement);
        }
    }

    #[test]
    fn what_is_short_means_what_is_usual() {
        let head = |text: &str| read(text, ViewHead::read).map(|(head, _)| head);
        let plain = head("view v as select 1").unwrap();
        assert_eq!((plain.definer, plain.check), (None, None));
        let full = head("or replace definer=root@localhost view v as select 1 with check option");
        let full = full.unwrap();
        assert!(full.replaces);
        assert_eq!(full.definer, Some(("root".to_owned(), "localhost".to_owned())));
        assert_eq!(full.check, Some("CASCADED"));
        assert!(head("view v as").is_err() && head("view v () as select 1").is_err());
        let trigger = "definer=root@localhost trigger t before insert on a for each row set @x=1";
        assert!(read(trigger, |tokens| Ok(!ViewHead::is_next(tokens))).unwrap());
    }
}
