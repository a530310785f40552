//! Indented JSON.

/// The indentation of each level.
const INDENT: &[u8] = b"  ";

/// Appends JSON with each member and each element on a line of its own. Its tokens are not changed.
pub(crate) fn push_pretty(json: &[u8], out: &mut Vec<u8>) {
    let (mut depth, mut rest) = (0_usize, json);
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match byte {
            b'"' => {
                let length = string_length(behind);
                out.push(b'"');
                out.extend_from_slice(behind.get(..length).unwrap_or_default());
                rest = behind.get(length..).unwrap_or_default();
            }
            b'{' | b'[' => {
                out.push(*byte);
                let inner = behind.trim_ascii_start();
                if let [close @ (b'}' | b']'), behind @ ..] = inner {
                    out.push(*close);
                    rest = behind;
                } else {
                    depth += 1;
                    new_line(depth, out);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(depth, out);
                out.push(*byte);
            }
            b',' => {
                out.push(b',');
                new_line(depth, out);
            }
            b':' => out.extend_from_slice(b": "),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => out.push(*byte),
        }
    }
}

fn new_line(depth: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    (0..depth).for_each(|_| out.extend_from_slice(INDENT));
}

/// The length of a string after its opening quote, including the closing one.
pub(crate) fn string_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found + 1;
        if bytes.get(at - 1) == Some(&b'"') {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_json_equals_serde_output() {
        let cases = [
            r#"{"a":[1,{"b":"x,\"]\\"}],"c":{},"d":[ ],"e":1.50,"f":{"g":[[]]}}"#,
            "[]",
            "\"\\\\\"",
            "{\"a\" : [ 1 , true ]}",
        ];
        for json in cases {
            let mut out = Vec::new();
            push_pretty(json.as_bytes(), &mut out);
            let value: Box<serde_json::value::RawValue> = serde_json::from_str(json).unwrap();
            let value: serde_json::Value = serde_json::from_str(value.get()).unwrap();
            let expected =
                serde_json::to_string_pretty(&value).unwrap().replace(": 1.5,", ": 1.50,");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
