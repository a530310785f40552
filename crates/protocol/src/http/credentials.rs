//! The `Authorization` header of a request.
//!
//! ```text
//! authorization = "Basic" " " base64(user ":" password) | "Bearer" " " token
//! ```

use std::fmt;

/// The credentials of a client.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user and the password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: Vec<u8>,
    },
    /// The token.
    Bearer(Vec<u8>),
}

impl Credentials {
    /// Parses the header's value; `None` if it has another form.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let at = value.iter().position(|byte| *byte == b' ')?;
        let (scheme, rest) = value.split_at_checked(at)?;
        let rest = rest.trim_ascii();
        if scheme.eq_ignore_ascii_case(b"Bearer") {
            return Some(Self::Bearer(rest.to_vec()));
        }
        if !scheme.eq_ignore_ascii_case(b"Basic") {
            return None;
        }
        let decoded = decode_base64(rest)?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let (user, password) = decoded.split_at_checked(colon)?;
        let user = String::from_utf8(user.to_vec()).ok()?;
        Some(Self::Basic { user, password: password.get(1..)?.to_vec() })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic { user, .. } => write!(out, "Basic({user:?}, ***)"),
            Self::Bearer(_) => out.write_str("Bearer(***)"),
        }
    }
}

/// Decodes Base64 of RFC 4648, with or without padding.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let text = text.get(..end)?;
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // A single character at the end encodes no byte.
    (count < 6).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credentials_are_read() {
        let basic = |user: &str, password: &str| {
            Some(Credentials::Basic { user: user.to_owned(), password: password.into() })
        };
        // The output of `printf 'anna:geheim' | base64`, and so on.
        for (value, read) in [
            ("Basic YW5uYTpnZWhlaW0=", basic("anna", "geheim")),
            ("basic YW5uYTpnZWhlaW0", basic("anna", "geheim")),
            ("Basic YW5uYTo=", basic("anna", "")),
            ("Basic YTpiOmM=", basic("a", "b:c")),
            ("Basic w7xtbGF1dDrDpA==", basic("ümlaut", "ä")),
            ("Bearer s3cret", Some(Credentials::Bearer(b"s3cret".to_vec()))),
            ("BEARER  a b", Some(Credentials::Bearer(b"a b".to_vec()))),
            ("Basic", None),
            ("Basic YW5uYQ==", None),
            ("Basic YW5uYTpnZWhlaW0*", None),
            ("Basic A", None),
            ("Digest a", None),
            ("", None),
        ] {
            assert_eq!(Credentials::parse(value.as_bytes()), read, "{value}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Credentials::parse(&bytes);
            let _ = Credentials::parse(&[b"Basic ", &bytes[..]].concat());
        }
    }
}
