//! Cuts a text where ASCII ends: most of many texts is ASCII, which needs little work.

/// The text as (ASCII, rest) pieces: the rest is what is not ASCII with the one ASCII character before
/// it, which marks may join. No character joins one that is behind it and ASCII, so each rest can be looked at alone.
pub(super) fn ascii_runs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ascii = ascii_prefix(rest.as_bytes());
        let other = rest.as_bytes()[ascii..].iter().take_while(|byte| !byte.is_ascii()).count();
        let (piece, behind) = rest.split_at(ascii + other);
        rest = behind;
        let before = usize::from(ascii > 0 && other > 0);
        Some(piece.split_at(ascii - before))
    })
}

/// How many bytes at the beginning are ASCII.
fn ascii_prefix(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<16>();
    let whole = blocks.iter().take_while(|block| block.is_ascii()).count() * 16;
    whole + bytes[whole..].iter().take_while(|byte| byte.is_ascii()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let runs = |text| ascii_runs(text).collect::<Vec<_>>();
        assert_eq!(runs("a naïve café"), [("a n", "aï"), ("ve ca", "fé")]);
        assert_eq!(runs("日本"), [("", "日本")]);
        assert_eq!(runs("é日 and so on, and so on"), [("", "é日"), (" and so on, and so on", "")]);
        assert_eq!(runs(""), []);
    }
}
