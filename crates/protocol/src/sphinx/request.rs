//! Parses the body of a request by its command.

use super::{
    Command, ExcerptRequest, KeywordsRequest, RequestError, RequestHead, SearchRequest,
    UpdateRequest, encode::Fields,
};

/// A request, borrowed from its bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Request<'a> {
    /// Search.
    Search(SearchRequest<'a>),
    /// Make excerpts.
    Excerpt(ExcerptRequest<'a>),
    /// Change the values of attributes.
    Update(UpdateRequest<'a>),
    /// Split a text into words.
    Keywords(KeywordsRequest<'a>),
    /// Whether to keep the connection open after replies. It has no reply.
    Persist(bool),
    /// Report the status of the server, or of the last search.
    Status {
        /// Whether the status of the server is asked for.
        of_server: bool,
    },
    /// Write changed attributes to disk.
    FlushAttributes,
    /// Answer with this number.
    Ping(u32),
}

impl<'a> Request<'a> {
    /// Reads the body that follows a head. Numbers that PERSIST, status and ping lack are 0, and bytes behind
    /// the last field are passed over, as `searchd` does.
    ///
    /// # Errors
    /// Why the request is refused; its text is the reply's.
    pub fn parse(head: &RequestHead, body: &'a [u8]) -> Result<Self, RequestError> {
        let RequestHead { command, version, .. } = *head;
        let mut fields = Fields::new(body);
        if command == Command::Persist {
            return Ok(Self::Persist(fields.flag().unwrap_or_default()));
        }
        command.check_version(version)?;
        Ok(match command {
            Command::Search => Self::Search(SearchRequest::read(version, &mut fields)?),
            Command::Excerpt => Self::Excerpt(ExcerptRequest::read(version, &mut fields)?),
            Command::Update => Self::Update(UpdateRequest::read(version, &mut fields)?),
            Command::Keywords => Self::Keywords(KeywordsRequest::read(&mut fields)?),
            Command::Persist => Self::Persist(fields.flag().unwrap_or_default()),
            Command::Status => Self::Status { of_server: fields.flag().unwrap_or_default() },
            Command::FlushAttributes => Self::FlushAttributes,
            Command::Ping => Self::Ping(fields.u32().unwrap_or_default()),
            Command::Unanswered(name) => return Err(RequestError::UnansweredCommand(name)),
        })
    }
}
