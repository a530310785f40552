//! The synonyms file: one group per line, words separated by tabs; `#` begins a comment line.

use std::path::Path;

const MAX_GROUP_WORDS: usize = 20;

/// Reads the groups of a file.
pub(super) fn read(path: &Path) -> Result<Vec<Vec<String>>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the synonyms {}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn parse(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut groups = Vec::new();
    for (number, line) in (1usize..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let words = line.split('\t').map(str::trim).filter(|word| !word.is_empty());
        let group: Vec<String> = words.map(str::to_owned).collect();
        if group.len() < 2 || group.len() > MAX_GROUP_WORDS {
            return Err(format!(
                "line {number} has {} words; a group has 2 to {MAX_GROUP_WORDS}, divided by tabs",
                group.len()
            ));
        }
        groups.push(group);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    #[test]
    fn groups() {
        let groups = super::parse("# cars\ncar\tautomobile\n\nbike\tbicycle\tcycle\n").unwrap();
        assert_eq!(groups, [vec!["car", "automobile"], vec!["bike", "bicycle", "cycle"]]);
        assert!(super::parse("alone\n").unwrap_err().contains("line 1"));
    }
}
