//! A column's declaration: what it means, and how SHOW CREATE TABLE prints it after the column's name.

use remora_mysql::Collation;

use super::kind::{TypeSpec, check_length};
use crate::{
    Column, Result, SqlType,
    parse::define::{ColumnDefinition, Declaration, DefaultSpec, quoted_name, quoted_text},
};

/// A column's declaration, without its name.
pub(crate) type ColumnSpec = Declaration<TypeSpec>;

impl ColumnSpec {
    /// The declaration of a column for a query's results.
    pub(crate) fn of_result(column: &Column, table: Collation) -> Self {
        // A text that is made of a UUID is no UUID.
        let collation = match Collation(column.collation) {
            of_type if of_type.is_of_type() => Collation::UTF8MB4_0900_AI_CI,
            collation => collation,
        };
        let text = collation != Collation::BINARY;
        let characters = if text { u64::from(column.length) / 4 } else { u64::from(column.length) };
        let mut kind = TypeSpec { unsigned: column.unsigned, ..TypeSpec::plain(column.kind) };
        match column.kind {
            SqlType::Null => kind = TypeSpec { length: 0, ..TypeSpec::plain(SqlType::VarChar) },
            SqlType::Char | SqlType::VarChar => kind.length = characters,
            SqlType::TinyBlob => kind.length = 255,
            SqlType::Blob => kind.length = 65_535,
            SqlType::MediumBlob => kind.length = 16_777_215,
            SqlType::LongBlob => kind.length = 4_294_967_295,
            SqlType::Vector => kind.length = u64::from(column.length) / 4,
            SqlType::Multi => kind = TypeSpec::of_multi(false),
            SqlType::Multi64 => kind = TypeSpec::of_multi(true),
            // The labels are not known here.
            SqlType::Enum | SqlType::Set => {
                kind = TypeSpec { length: characters, ..TypeSpec::plain(SqlType::VarChar) };
            }
            _ => {}
        }
        let textual = matches!(
            kind.sql,
            SqlType::Char
                | SqlType::VarChar
                | SqlType::TinyBlob
                | SqlType::Blob
                | SqlType::MediumBlob
                | SqlType::LongBlob
        );
        if textual && column.kind != SqlType::Null {
            kind.collation = collation;
            kind.collation_said = collation != table && text;
        }
        let mut spec = Self::plain(kind);
        spec.not_null = column.not_null || spec.kind.multi().is_some();
        let moment = matches!(
            spec.kind.sql,
            SqlType::Date | SqlType::DateTime(_) | SqlType::Timestamp(_) | SqlType::Time(_)
        );
        let is_set = spec.kind.multi().is_some();
        if spec.not_null
            && !is_set
            && column.original_table.is_empty()
            && !moment
            && !spec.kind.is_blob()
        {
            let zero: &[u8] = if textual { b"" } else { b"0" };
            spec.default = DefaultSpec::Constant(zero.to_vec());
        }
        spec
    }

    /// The declaration of a new column, in a table with this collation.
    ///
    /// # Errors
    /// Those of its type's lengths, character set and collation.
    pub(crate) fn of(column: &ColumnDefinition, table: Collation) -> Result<Self> {
        let spec = Self::accepted(column, table)?;
        check_length(&spec.kind, &column.name)?;
        Ok(spec)
    }

    /// The declaration of a column that a server has accepted.
    pub(crate) fn accepted(column: &ColumnDefinition, table: Collation) -> Result<Self> {
        let written = column.declared.clone();
        let kind = TypeSpec::of(&written.kind, &column.name, table)?;
        Ok(Self {
            // A set without numbers is empty, not NULL.
            not_null: written.not_null || column.extras.primary || kind.multi().is_some(),
            kind,
            default: written.default,
            on_update_now: written.on_update_now,
            auto_increment: written.auto_increment,
            generated: written.generated,
            invisible: written.invisible,
            comment: written.comment,
        })
    }

    /// The declaration as SHOW CREATE TABLE prints it, in a table with this collation.
    pub(crate) fn written(&self, table: Collation) -> String {
        let mut out = self.kind.spelled();
        self.write_collation(table, &mut out);
        if let Some(generated) = &self.generated {
            let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
            out.push_str(&format!(" GENERATED ALWAYS AS ({}) {kind}", generated.expression));
        }
        if self.not_null {
            out.push_str(" NOT NULL");
        } else if matches!(self.kind.sql, SqlType::Timestamp(_)) {
            out.push_str(" NULL");
        }
        self.write_default(&mut out);
        if self.on_update_now {
            out.push_str(" ON UPDATE ");
            out.push_str(&self.now());
        }
        if self.auto_increment {
            out.push_str(" AUTO_INCREMENT");
        }
        if self.invisible {
            out.push_str(" /*!80023 INVISIBLE */");
        }
        if !self.comment.is_empty() {
            out.push_str(" COMMENT ");
            out.push_str(&quoted_text(&self.comment));
        }
        out
    }

    fn write_collation(&self, table: Collation, out: &mut String) {
        let kind = &self.kind;
        if !kind.is_text() || kind.spelling.is_some() {
            return;
        }
        let info = kind.collation.info();
        if kind.collation_said || kind.collation != table {
            out.push_str(&format!(" CHARACTER SET {} COLLATE {}", info.charset, info.name));
        } else if !info.is_default {
            out.push_str(&format!(" COLLATE {}", info.name));
        }
    }

    fn write_default(&self, out: &mut String) {
        if self.generated.is_some() || self.auto_increment {
            return;
        }
        match &self.default {
            DefaultSpec::None if self.not_null || self.kind.is_blob() => {}
            DefaultSpec::None | DefaultSpec::Null => out.push_str(" DEFAULT NULL"),
            DefaultSpec::Constant(text) => {
                out.push_str(" DEFAULT ");
                out.push_str(&quoted_bytes(text));
            }
            DefaultSpec::Bits(spelled) => {
                out.push_str(" DEFAULT ");
                out.push_str(spelled);
            }
            DefaultSpec::Now => {
                out.push_str(" DEFAULT ");
                out.push_str(&self.now());
            }
            DefaultSpec::Expression(text) => out.push_str(&format!(" DEFAULT ({text})")),
        }
    }

    /// `CURRENT_TIMESTAMP` with the column's fraction digits.
    pub(crate) fn now(&self) -> String {
        match self.kind.fraction_digits() {
            0 => "CURRENT_TIMESTAMP".to_owned(),
            digits => format!("CURRENT_TIMESTAMP({digits})"),
        }
    }
}

fn quoted_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => quoted_text(text),
        Err(_) => {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("0x{}", digits.concat())
        }
    }
}

/// A column's line in SHOW CREATE TABLE, without the comma.
pub(crate) fn column_line(name: &str, declared: &str) -> String {
    format!("  {} {declared}", quoted_name(name))
}
