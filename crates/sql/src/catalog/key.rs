//! Keys and conditions of a table as SHOW CREATE TABLE prints them: the lines after the columns.

use crate::parse::define::{
    Key, KeyKind, KeyPart, NO_ACTION, PartOf, References, TableLine, quoted_name, quoted_text,
};

fn written_parts(parts: &[KeyPart]) -> String {
    let parts: Vec<String> = parts.iter().map(KeyPart::written).collect();
    parts.join(",")
}

fn column_list(columns: &[String]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
    format!("({})", columns.join(", "))
}

impl TableLine {
    /// The line as SHOW CREATE TABLE prints it.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::Key(key) => key.written(),
            Self::Check(check) => {
                let enforced = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
                let name = quoted_name(&check.name);
                format!("CONSTRAINT {name} CHECK ({}){enforced}", check.expression)
            }
            Self::Foreign(key) => {
                let name =
                    key.name.as_ref().map(|name| format!("CONSTRAINT {} ", quoted_name(name)));
                let columns = column_list(&key.columns);
                let references = key.references.written();
                format!("{}FOREIGN KEY {columns} REFERENCES {references}", name.unwrap_or_default())
            }
        }
    }
}

impl References {
    fn written(&self) -> String {
        let mut out = quoted_name(&self.table.name);
        if let Some(database) = &self.table.database {
            out = format!("{}.{out}", quoted_name(database));
        }
        if !self.columns.is_empty() {
            out.push_str(&format!(" {}", column_list(&self.columns)));
        }
        for (event, action) in [("DELETE", self.on_delete), ("UPDATE", self.on_update)] {
            if action != NO_ACTION {
                out.push_str(&format!(" ON {event} {action}"));
            }
        }
        out
    }
}

impl Key {
    fn written(&self) -> String {
        let kind = match self.kind {
            KeyKind::Primary => "PRIMARY KEY".to_owned(),
            KeyKind::Unique => format!("UNIQUE KEY {}", quoted_name(&self.name)),
            KeyKind::Plain => format!("KEY {}", quoted_name(&self.name)),
            KeyKind::Fulltext => format!("FULLTEXT KEY {}", quoted_name(&self.name)),
            KeyKind::Spatial => format!("SPATIAL KEY {}", quoted_name(&self.name)),
            KeyKind::Vector => format!("VECTOR KEY {}", quoted_name(&self.name)),
        };
        let mut out = format!("{kind} ({})", written_parts(&self.parts));
        if let Some(using) = &self.using {
            out.push_str(&format!(" USING {using}"));
        }
        if !self.comment.is_empty() {
            out.push_str(&format!(" COMMENT {}", quoted_text(&self.comment)));
        }
        if let Some(parser) = &self.parser {
            out.push_str(&format!(" /*!50100 WITH PARSER {} */ ", quoted_name(parser)));
        }
        if self.invisible {
            out.push_str(" /*!80000 INVISIBLE */");
        }
        out
    }
}

impl KeyPart {
    fn written(&self) -> String {
        let mut out = match &self.of {
            PartOf::Column(name) => quoted_name(name),
            PartOf::Expression(expression) => format!("({expression})"),
        };
        if let Some(prefix) = self.prefix {
            out.push_str(&format!("({prefix})"));
        }
        if self.descending {
            out.push_str(" DESC");
        }
        out
    }
}
