//! CREATE VIEW and ALTER VIEW.
//!
//! ```text
//! view := ["OR" "REPLACE"] ["ALGORITHM" "=" word] ["DEFINER" "=" user] ["SQL" "SECURITY" word]
//!         "VIEW" ["IF" "NOT" "EXISTS"] name ["(" column ("," column)* ")"] "AS" select
//!         ["WITH" ["CASCADED" | "LOCAL"] "CHECK" "OPTION"]
//! ```

use std::ops::Range;

use remora_mysql::{ErrorCode, TokenKind};

use super::{QualifiedName, QueryDefinition};
use crate::{
    Error, Result,
    parse::{Source, Tokens, read},
};

/// A view's definition.
#[derive(Debug)]
pub(crate) struct ViewDefinition {
    /// Whether it is ALTER.
    pub alters: bool,
    /// All but its SELECT.
    pub head: ViewHead,
    /// Its SELECT.
    pub select: QueryDefinition,
}

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
    /// Its name.
    pub name: QualifiedName,
    /// The names of its columns, if they are listed.
    pub columns: Vec<String>,
    /// CASCADED or LOCAL.
    pub check: Option<&'static str>,
}

const ALGORITHMS: [&str; 3] = ["UNDEFINED", "MERGE", "TEMPTABLE"];
const SECURITIES: [&str; 2] = ["DEFINER", "INVOKER"];

impl ViewDefinition {
    /// Reads a definition after CREATE or ALTER.
    ///
    /// # Errors
    /// 1350 and 1351 for clauses that a view may not have.
    pub(super) fn read(tokens: &mut Tokens<'_>, alters: bool) -> Result<Self> {
        let (head, select) = ViewHead::read(tokens)?;
        let select = QueryDefinition::source_of(tokens, select)?;
        check_select(&select)?;
        Ok(Self { alters, head, select: QueryDefinition::read(select, &[])? })
    }
}

/// Reads a stored statement: the definition, and the text of its SELECT.
pub(crate) fn stored_view(statement: &str) -> Result<(ViewHead, String)> {
    read(statement, |tokens| {
        tokens.expect("CREATE")?;
        let (head, select) = ViewHead::read(tokens)?;
        Ok((head, tokens.shown(select)))
    })
}

impl ViewHead {
    /// Whether a view's definition follows, after CREATE or ALTER.
    pub(super) fn is_next(tokens: &Tokens<'_>) -> bool {
        let mut ahead = *tokens;
        ahead.accept_all("OR REPLACE");
        let words = ["VIEW", "ALGORITHM", "DEFINER", "SQL"];
        words.iter().any(|word| ahead.is_word(word)) && Self::read_options(&mut ahead).is_ok()
    }

    /// Reads a definition after CREATE or ALTER, with the tokens of the SELECT.
    pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<(Self, Range<usize>)> {
        let replaces = tokens.accept_all("OR REPLACE");
        let mut head = Self { replaces, ..Self::read_options(tokens)? };
        head.lenient = tokens.accept_all("IF NOT EXISTS");
        head.name = QualifiedName::read(tokens)?;
        if tokens.take("(") {
            head.columns = tokens.list(Tokens::name)?;
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

    /// Reads the clauses before the name.
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

/// Reads a user with a host; `None` for the current user.
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

/// Refuses clauses that a view may not have.
fn check_select(source: &Source) -> Result<()> {
    let varies = |kind: TokenKind| {
        matches!(kind, TokenKind::UserVariable | TokenKind::SystemVariable | TokenKind::Parameter)
    };
    for (at, token) in source.tokens.iter().enumerate() {
        if varies(token.kind) {
            let message = "View's SELECT contains a variable or parameter";
            return Err(Error::new(ErrorCode::ViewVariable, message));
        }
        if source.is_word(at, "INTO") && !(at > 0 && source.is(at - 1, ".")) {
            let message = "View's SELECT contains a 'INTO' clause";
            return Err(Error::new(ErrorCode::ViewClause, message));
        }
        if source.mode.pipes_as_concat && source.is(at, "||") {
            return Err(Error::unsupported("|| in a view with PIPES_AS_CONCAT: write CONCAT"));
        }
        let is_introducer = source.bytes(token).first() == Some(&b'_')
            && source.tokens.get(at + 1).is_some_and(|next| next.kind == TokenKind::Text);
        if is_introducer && !source.mode.client.is_utf8() {
            let what = "a text with a character set in a view, of a client whose own is not UTF-8";
            return Err(Error::unsupported(what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
