//! SHOW VARIABLES: a table in ASCII characters, as the `mysql` client prints it.

use super::{number, text};

/// The least widths of the columns of names and values.
const LEAST_WIDTHS: [usize; 2] = [20, 15];

/// One variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableRow {
    /// Its name.
    pub name: String,
    /// The displayed value.
    pub value: String,
    /// Whether SET can change it.
    pub mutable: bool,
}

/// The reply to SHOW VARIABLES. Without rows it is `+OK 0 rows`.
pub fn write_variables(out: &mut Vec<u8>, rows: &[VariableRow]) {
    if rows.is_empty() {
        return text(out, "+OK 0 rows\r\n");
    }
    let cells: Vec<[String; 3]> = rows.iter().map(cells).collect();
    let header = ["Variable_name", "Value", "Mutable"].map(str::to_owned);
    let all = || cells.iter().chain([&header]);
    let width = |column: fn(&[String; 3]) -> &String| {
        all().map(|cells| column(cells).chars().count()).max().unwrap_or(0)
    };
    let widths = [
        width(|cells| &cells[0]).max(LEAST_WIDTHS[0]),
        width(|cells| &cells[1]).max(LEAST_WIDTHS[1]),
        width(|cells| &cells[2]),
    ];
    write_rule(out, widths);
    write_cells(out, &header, widths);
    write_rule(out, widths);
    cells.iter().for_each(|cells| write_cells(out, cells, widths));
    write_rule(out, widths);
    number(out, rows.len() as u64);
    text(out, if rows.len() == 1 { " row in set\r\n" } else { " rows in set\r\n" });
}

fn cells(row: &VariableRow) -> [String; 3] {
    let mutable = if row.mutable { "YES" } else { "NO" };
    [one_line(&row.name), one_line(&row.value), mutable.to_owned()]
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn write_rule(out: &mut Vec<u8>, widths: [usize; 3]) {
    for width in widths {
        out.push(b'+');
        out.extend(std::iter::repeat_n(b'-', width + 2));
    }
    text(out, "+\r\n");
}

fn write_cells(out: &mut Vec<u8>, cells: &[String; 3], widths: [usize; 3]) {
    for (cell, width) in cells.iter().zip(widths) {
        text(out, &format!("| {cell:width$} "));
    }
    text(out, "|\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_print_as_a_table() {
        let row = |name: &str, value: &str, mutable| VariableRow {
            name: name.to_owned(),
            value: value.to_owned(),
            mutable,
        };
        let mut out = Vec::new();
        write_variables(&mut out, &[row("cache.enabled", "true", true), row("a", "x\ny", false)]);
        let expected = "\
            +----------------------+-----------------+---------+\r\n\
            | Variable_name        | Value           | Mutable |\r\n\
            +----------------------+-----------------+---------+\r\n\
            | cache.enabled        | true            | YES     |\r\n\
            | a                    | x y             | NO      |\r\n\
            +----------------------+-----------------+---------+\r\n\
            2 rows in set\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
