//! A request to mark words in texts.
//!
//! ```text
//! body := u32 mode, u32 flags, index, words, before, after, separator, u32 limit, u32 around,
//!         [>= 0x102: u32 limit_passages, u32 limit_words, u32 start_passage_id, strip mode],
//!         [>= 0x103: boundary], u32 count, texts
//! ```

use super::{
    RequestError,
    encode::{Fields, Text},
};

/// Most texts of a request.
const MAX_TEXTS: i32 = 1_024;

const DEFAULT_STRIP_MODE: &str = "index";

/// A request for excerpts: passages of texts in which the words of a query are marked.
#[derive(Clone, Debug, PartialEq)]
pub struct ExcerptRequest<'a> {
    /// The bits as they were sent: 1 remove spaces, 2 exact phrase, 4 single passage, 8 use boundaries, 16 weight
    /// order, 32 query mode, 64 force all words, 128 load files, 256 allow empty, 512 emit zones, 1024 scattered files.
    pub flags: u32,
    /// The index whose settings say how texts become words.
    pub index: Text<'a>,
    /// The query.
    pub words: Text<'a>,
    /// The text to insert before a match.
    pub before_match: Text<'a>,
    /// The text to insert after a match.
    pub after_match: Text<'a>,
    /// The text to insert between passages.
    pub chunk_separator: Text<'a>,
    /// The most characters of an excerpt; 0 means no limit.
    pub limit: i32,
    /// The number of words to show on either side of a match.
    pub around: i32,
    /// The most passages; 0 means no limit.
    pub limit_passages: i32,
    /// The most words; 0 means no limit.
    pub limit_words: i32,
    /// The number that the first passage gets.
    pub start_passage_id: i32,
    /// The treatment of markup: `none`, `index`, `strip` or `retain`.
    pub html_strip_mode: Text<'a>,
    /// The boundary that no passage crosses: `sentence`, `paragraph` or `zone`. Any other text means none.
    pub passage_boundary: Text<'a>,
    /// The texts; at most 1,024.
    pub texts: Vec<Text<'a>>,
}

impl<'a> ExcerptRequest<'a> {
    /// Reads a body of a version.
    ///
    /// # Errors
    /// [`RequestError::StripMode`], [`RequestError::EntryCount`], [`RequestError::Truncated`].
    pub(super) fn read(version: u16, fields: &mut Fields<'a>) -> Result<Self, RequestError> {
        let _mode = fields.u32()?;
        let mut request = Self {
            flags: fields.u32()?,
            index: fields.text()?,
            words: fields.text()?,
            before_match: fields.text()?,
            after_match: fields.text()?,
            chunk_separator: fields.text()?,
            limit: fields.i32()?,
            around: fields.i32()?,
            limit_passages: 0,
            limit_words: 0,
            start_passage_id: 1,
            html_strip_mode: DEFAULT_STRIP_MODE.into(),
            passage_boundary: Text::default(),
            texts: Vec::new(),
        };
        if version >= 0x102 {
            request.limit_passages = fields.i32()?;
            request.limit_words = fields.i32()?;
            request.start_passage_id = fields.i32()?;
            request.html_strip_mode = fields.text()?;
            if !["none", "index", "strip", "retain"].contains(&&*request.html_strip_mode) {
                return Err(RequestError::StripMode(request.html_strip_mode.into_owned()));
            }
        }
        if version >= 0x103 {
            request.passage_boundary = fields.text()?;
        }
        let count = fields.i32()?;
        let wrong = || RequestError::EntryCount(count);
        let texts = u32::try_from(count).map_err(|_| wrong())?;
        if !(1..=MAX_TEXTS).contains(&count) {
            return Err(wrong());
        }
        request.texts = fields.entries(texts, 4, Fields::text)?;
        Ok(request)
    }
}
