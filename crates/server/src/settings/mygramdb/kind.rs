//! The permitted values of keys.

use std::{fmt, net::IpAddr};

use serde_json::Value;

use super::node::{Node, Tree};
use crate::settings::Cidr;

/// Filter types of MygramDB.
pub(super) const FILTER_TYPES: &[&str] = &[
    "tinyint",
    "tinyint_unsigned",
    "smallint",
    "smallint_unsigned",
    "mediumint",
    "mediumint_unsigned",
    "int",
    "int_unsigned",
    "bigint",
    "bigint_unsigned",
    "float",
    "double",
    "string",
    "varchar",
    "text",
    "datetime",
    "date",
    "timestamp",
    "time",
    "boolean",
];

/// The statements that `mysql.ignored_ddl_prefixes` may begin with.
const DEFINITIONS: [&str; 9] =
    ["ALTER", "ANALYZE", "CHECK", "CREATE", "DROP", "OPTIMIZE", "RENAME", "REPAIR", "TRUNCATE"];

/// The permitted values of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// `true` or `false`.
    Flag,
    /// Only `true`.
    True,
    /// An integer in an inclusive range.
    Whole(u64, u64),
    /// One of these integers.
    WholeOf(&'static [u64]),
    /// A number in an inclusive range.
    Number(f64, f64),
    /// Any text.
    Text,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A MySQL identifier: not empty, no NUL.
    Name,
    /// A path without `..`, possibly empty.
    Path,
    /// A path without `..`.
    File,
    /// A file name without a directory.
    FileName,
    /// An address or a host name.
    Host,
    /// `+09:00`.
    ZoneOffset,
    /// `snapshot`, `latest` or `gtid=…`.
    StartFrom,
    /// A text, a number or a boolean.
    Scalar,
    /// At least this many names.
    Names(usize),
    /// Networks.
    Networks,
    /// Addresses.
    Addresses,
    /// Prefixes of schema change statements.
    Statements,
}

impl Kind {
    /// Whether a value is permitted.
    pub fn allows(self, node: &Node) -> bool {
        match &node.tree {
            Tree::Scalar(value) => self.allows_scalar(value),
            Tree::Map(_) => false,
            Tree::List(items) => {
                let texts = || items.iter().all(|item| item.text().is_some());
                let each =
                    |fits: fn(&str) -> bool| items.iter().all(|item| item.text().is_some_and(fits));
                match self {
                    Self::Names(least) => items.len() >= least && texts() && each(is_name),
                    Self::Networks => each(|text| Cidr::parse(text).is_ok()),
                    Self::Addresses => each(|text| text.parse::<IpAddr>().is_ok()),
                    Self::Statements => each(is_definition),
                    _ => false,
                }
            }
        }
    }

    /// Whether a value that is not a list is permitted.
    pub fn allows_scalar(self, value: &Value) -> bool {
        let text = || value.as_str();
        match self {
            Self::Flag => value.is_boolean(),
            Self::True => *value == Value::Bool(true),
            Self::Whole(least, most) => {
                value.as_u64().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::WholeOf(known) => value.as_u64().is_some_and(|number| known.contains(&number)),
            Self::Number(least, most) => {
                value.as_f64().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Text => value.is_string(),
            Self::Choice(known) => text().is_some_and(|text| known.contains(&text)),
            Self::Name => text().is_some_and(is_name),
            Self::Path => text().is_some_and(is_path),
            Self::File => text().is_some_and(|text| !text.is_empty() && is_path(text)),
            Self::FileName => text().is_some_and(is_file_name),
            Self::Host => text().is_some_and(is_host),
            Self::ZoneOffset => text().is_some_and(is_zone_offset),
            Self::StartFrom => text().is_some_and(is_start),
            Self::Scalar => value.is_string() || value.is_number() || value.is_boolean(),
            Self::Names(_) | Self::Networks | Self::Addresses | Self::Statements => false,
        }
    }

    /// The type's name in CONFIG HELP.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Flag | Self::True => "boolean",
            Self::Whole(..) | Self::WholeOf(_) => "integer",
            Self::Number(..) => "number",
            Self::Scalar => "string | number | boolean",
            Self::Names(_) | Self::Networks | Self::Addresses | Self::Statements => "array",
            _ => "string",
        }
    }
}

/// The permitted values, as the end of a sentence.
impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Flag => out.write_str("true or false"),
            Self::True => out.write_str("always true; take the key out"),
            Self::Whole(least, u64::MAX) => write!(out, "a whole number of {least} or more"),
            Self::Whole(least, most) => write!(out, "a whole number between {least} and {most}"),
            Self::WholeOf(known) => {
                let known: Vec<String> = known.iter().map(u64::to_string).collect();
                write!(out, "one of {}", known.join(", "))
            }
            Self::Number(least, f64::INFINITY) => write!(out, "a number of {least} or more"),
            Self::Number(least, most) => write!(out, "a number between {least} and {most}"),
            Self::Text => out.write_str("a text (write a number in quotes)"),
            Self::Choice([only]) => write!(out, "{only} and nothing else"),
            Self::Choice(known) => write!(out, "one of {}", known.join(", ")),
            Self::Name => out.write_str("a name, which is not empty"),
            Self::Path => out.write_str("a path without '..'"),
            Self::File => out.write_str("a path without '..', which is not empty"),
            Self::FileName => out.write_str("the name of a file, without a directory"),
            Self::Host => out.write_str("an IP address or a host's name"),
            Self::ZoneOffset => out.write_str("an offset from UTC, as +09:00"),
            Self::StartFrom => out.write_str("snapshot, latest or gtid=UUID:NUMBER"),
            Self::Scalar => out.write_str("a text, a number, true or false"),
            Self::Names(least) => write!(out, "a list of {least} names or more"),
            Self::Networks => out.write_str("a list of networks, as 10.0.0.0/8"),
            Self::Addresses => out.write_str("a list of IP addresses"),
            Self::Statements => write!(
                out,
                "a list of beginnings of statements without ';', of which none is empty and each \
                 begins with one of {}",
                DEFINITIONS.join(", ")
            ),
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('\0')
}

fn is_path(text: &str) -> bool {
    !text.contains('\0') && !text.split(['/', '\\']).any(|part| part == "..")
}

fn is_file_name(text: &str) -> bool {
    !text.is_empty() && text != "." && !text.contains(['/', '\\']) && is_path(text)
}

/// An address, with or without an IPv6 scope, or labels of letters, digits and hyphens.
fn is_host(text: &str) -> bool {
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let plain = !text.contains(char::is_whitespace) && !text.contains(['/', '\0']);
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain
        && (address.parse::<IpAddr>().is_ok()
            || (!is_number && text.len() <= 253 && text.split('.').all(is_label)))
}

fn is_zone_offset(text: &str) -> bool {
    let digits = |text: &str, most: u8| {
        text.len() == 2
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse::<u8>().is_ok_and(|number| number <= most)
    };
    let rest = text.strip_prefix(['+', '-']);
    let parts = rest.and_then(|rest| rest.split_once(':'));
    parts.is_some_and(|(hours, minutes)| digits(hours, 23) && digits(minutes, 59))
}

fn is_start(text: &str) -> bool {
    let gtid = text.strip_prefix("gtid=");
    matches!(text, "snapshot" | "latest") || gtid.is_some_and(|gtid| gtid.contains(':'))
}

fn is_definition(text: &str) -> bool {
    let verb = text.split_whitespace().next().unwrap_or("");
    !text.contains(';') && DEFINITIONS.iter().any(|known| verb.eq_ignore_ascii_case(known))
}
