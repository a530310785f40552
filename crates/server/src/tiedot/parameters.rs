//! The parameters of a request: from its query string, from a form, or a JSON body.
//!
//! ```text
//! parameters := pair ("&" pair)*        pair := name "=" value        name, value := percent-encoded UTF-8, + is a space
//! ```
//!
//! curl sends the argument of `-d` as a form, whatever it is. So a form body that begins like JSON is taken for JSON,
//! because no parameter's name begins with a bracket or a quote.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{HeaderMap, Request, StatusCode, header},
};

use super::reply::{Refusal, shortened};
use crate::{
    settings::{Http, Settings},
    web::{BodyProblem, read_body_of},
};

/// The most parameters of a request.
const MAX_PARAMETERS: usize = 32;
/// The media type of forms.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";
/// What a form may have beside a document of `http.max_body_bytes`.
const FURTHER_BYTES: usize = 64 << 10;
/// The parameter with a login token.
pub(super) const TOKEN: &str = "access_token";

/// The parameters of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    values: BTreeMap<String, String>,
    /// A body that is not a form.
    body: Option<String>,
}

impl Parameters {
    /// Reads the parameters, and the body within its limits.
    pub(super) async fn read(request: Request<Body>, settings: &Settings) -> Result<Self, Refusal> {
        let mut parameters = Self::default();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let kind = media_type(request.headers());
        let most = most_bytes(&kind, &settings.http);
        let body = read_body_of(request, &settings.http, most)
            .await
            .map_err(|problem| unread(&problem, most, &settings.http))?;
        parameters.add(query.as_bytes())?;
        let body = String::from_utf8(body).map_err(|_| Refusal::wrong("The body is not UTF-8."))?;
        let is_json = body.trim_start().starts_with(['{', '[', '"']);
        match &*kind {
            _ if body.trim().is_empty() => {}
            FORM if !is_json => parameters.add(body.as_bytes())?,
            "multipart/form-data" if !is_json => {
                return Err(Refusal::wrong(
                    "Forms of multipart/form-data are not read: send \
                     application/x-www-form-urlencoded, or the JSON alone.",
                ));
            }
            _ => parameters.body = Some(body),
        }
        // Only the encoding of a form may take more.
        let most = settings.http.max_body_bytes;
        if parameters.values.values().chain(&parameters.body).any(|value| value.len() > most) {
            return Err(unread(&BodyProblem::TooLarge, most, &settings.http));
        }
        Ok(parameters)
    }

    fn add(&mut self, text: &[u8]) -> Result<(), Refusal> {
        for pair in text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            let (name, value) = pair.split_at_checked(at).unwrap_or((pair, &[]));
            let (name, value) = (decode(name)?, decode(value.get(1..).unwrap_or_default())?);
            if self.values.get(&name).is_some_and(|other| *other != value) {
                let text = format!("Parameter '{}' is given twice.", shortened(&name));
                return Err(Refusal::wrong(text));
            }
            self.values.insert(name, value);
            if self.values.len() > MAX_PARAMETERS {
                let text = format!("There are more than {MAX_PARAMETERS} parameters.");
                return Err(Refusal::wrong(text));
            }
        }
        Ok(())
    }

    /// Refuses unknown parameters. `body` is the parameter that a JSON body stands for.
    pub(super) fn check(&mut self, known: &[&str], body: Option<&str>) -> Result<(), Refusal> {
        let is_known = |name: &str| name == TOKEN || known.contains(&name);
        if let Some(name) = self.values.keys().find(|name| !is_known(name)) {
            let text = match known {
                [] => format!("Unknown parameter '{}': this takes none.", shortened(name)),
                _ => {
                    let known = known.join(", ");
                    format!("Unknown parameter '{}': known here are {known}.", shortened(name))
                }
            };
            return Err(Refusal::wrong(text));
        }
        let Some(credentials) = self.body.take() else { return Ok(()) };
        let Some(name) = body else {
            return Err(Refusal::wrong("This takes no body of JSON: use parameters."));
        };
        if self.values.insert(name.to_owned(), credentials).is_some_and(|value| !value.is_empty()) {
            let text = format!("Parameter '{name}' is given twice: by its name and as the body.");
            return Err(Refusal::wrong(text));
        }
        Ok(())
    }

    /// The value of a required parameter.
    pub(super) fn require(&self, name: &str) -> Result<&str, Refusal> {
        let value = self.values.get(name).filter(|value| !value.is_empty());
        value.map(String::as_str).ok_or_else(|| {
            Refusal::wrong(format!("Please pass POST/PUT/GET parameter value of '{name}'."))
        })
    }
}

/// The token in a query string, if there is one.
pub(super) fn token(query: &str) -> Option<Vec<u8>> {
    token_of(query.as_bytes().split(|byte| *byte == b'&'))
}

/// The token in a form of which this is the beginning, or all.
pub(super) fn token_of_form(form: &[u8], is_all: bool) -> Option<Vec<u8>> {
    if form.trim_ascii_start().starts_with(b"{") || form.trim_ascii_start().starts_with(b"[") {
        return None;
    }
    // What was cut off may be a part of a token.
    let end = match is_all {
        true => form.len(),
        false => form.iter().rposition(|byte| *byte == b'&')?,
    };
    token_of(form.get(..end)?.split(|byte| *byte == b'&'))
}

fn token_of<'p>(mut pairs: impl Iterator<Item = &'p [u8]>) -> Option<Vec<u8>> {
    let value = pairs.find_map(|pair| pair.strip_prefix(TOKEN.as_bytes())?.strip_prefix(b"="))?;
    decode(value).ok().map(String::into_bytes)
}

/// The media type of a body, without its parameters; empty if there is none.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()?.split(';').next()).unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// The most bytes of a body: `http.max_body_bytes`, in a form with each byte percent-encoded, and other parameters.
fn most_bytes(kind: &str, settings: &Http) -> usize {
    match kind {
        FORM => settings.max_body_bytes.saturating_mul(3).saturating_add(FURTHER_BYTES),
        _ => settings.max_body_bytes,
    }
}

/// The error for a body that was not read.
fn unread(problem: &BodyProblem, most: usize, settings: &Http) -> Refusal {
    let patience = settings.read_timeout_s;
    match problem {
        BodyProblem::TooLarge => Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("The body takes more than {most} bytes, the limit by http.max_body_bytes."),
        ),
        BodyProblem::Timeout => Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("The body did not come within {patience} s."),
        ),
    }
}

/// Decodes percent-encoded text.
fn decode(text: &[u8]) -> Result<String, Refusal> {
    let wrong = || {
        let text = String::from_utf8_lossy(text);
        Refusal::wrong(format!("'{}' is no percent-encoded UTF-8.", shortened(&text)))
    };
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => {
                let mut digit = || char::from(*rest.next()?).to_digit(16);
                let (high, low) = (digit(), digit());
                let (Some(high), Some(low)) = (high, low) else { return Err(wrong()) };
                decoded.push((high * 16 + low) as u8);
            }
            byte => decoded.push(*byte),
        }
    }
    String::from_utf8(decoded).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str, kind: &str, body: &str) -> Result<Parameters, Refusal> {
        let request = Request::builder().uri(format!("http://h/insert?{query}"));
        let request =
            request.header("content-type", kind).body(Body::from(body.to_owned())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(Parameters::read(request, &Settings::default()))
    }

    #[test]
    fn parameters_are_read_from_query_string_and_forms() {
        let mut read = read("col=a%20b%26c&x", FORM, "doc=%7b%22a%22%3A+1}&col=a+b%26c").unwrap();
        assert!(read.check(&["col", "doc", "x"], None).is_ok());
        assert_eq!(read.require("col").unwrap(), "a b&c");
        assert_eq!(read.require("doc").unwrap(), r#"{"a": 1}"#);
        for missing in ["x", "id"] {
            let message = read.require(missing).unwrap_err().text;
            assert_eq!(
                message,
                format!("Please pass POST/PUT/GET parameter value of '{missing}'.")
            );
        }
    }

    #[test]
    fn json_body_is_recognized_with_any_content_type() {
        for kind in [FORM, "application/json", "text/plain", "multipart/form-data", "x", ""] {
            let mut read = read("col=a", kind, " {\"a\":\"b&c=%zz\"}").unwrap();
            assert!(read.check(&["col", "doc"], Some("doc")).is_ok(), "{kind}");
            assert_eq!(read.require("doc").unwrap(), " {\"a\":\"b&c=%zz\"}");
        }
        let mut twice = read("doc=1", FORM, "{}").unwrap();
        assert!(twice.check(&["doc"], Some("doc")).unwrap_err().text.contains("given twice"));
        let mut nobody = read("", FORM, "{}").unwrap();
        assert!(nobody.check(&["col"], None).unwrap_err().text.contains("no body"));
    }

    #[test]
    fn invalid_input_has_messages() {
        let message_of = |query: &str, body: &str| read(query, FORM, body).unwrap_err().text;
        for query in ["a=%", "a=%4", "a=%zz", "%ff=1", "a=%c3%28"] {
            assert!(message_of(query, "").contains("no percent-encoded UTF-8"), "{query}");
        }
        assert_eq!(message_of("col=a", "col=b"), "Parameter 'col' is given twice.");
        let many: Vec<String> = (0..40).map(|number| format!("p{number}=1")).collect();
        assert!(message_of(&many.join("&"), "").contains("more than 32 parameters"));
        assert!(read("", "multipart/form-data; boundary=x", "--x").is_err());
        let mut unknown = read("col=a&colour=b", FORM, "").unwrap();
        let message = unknown.check(&["col", "id"], None).unwrap_err().text;
        assert_eq!(message, "Unknown parameter 'colour': known here are col, id.");
        assert_eq!(token("a=b&access_token=x%2By").unwrap(), b"x+y");
        assert_eq!(token("a=b&my_access_token=x"), None);
        let form = b"a=b&access_token=x%2By&c=d";
        assert_eq!(token_of_form(form, true).unwrap(), b"x+y");
        assert_eq!(token_of_form(b"a=b&access_token=x%2By&c", false).unwrap(), b"x+y");
        assert_eq!(token_of_form(b"a=b&access_token=x%2By", true).unwrap(), b"x+y");
        // The rest of the token may be still to come.
        for cut in [&b"a=b&access_token=x%2By"[..], b"access_token=x", b"a"] {
            assert_eq!(token_of_form(cut, false), None);
        }
        assert_eq!(token_of_form(b" {\"a\": \"&access_token=x&\"}", true), None);
    }
}
