//! One named byte stream.

use std::fmt;
use std::io::{self, Cursor, Read};

/// A readable stream of stored bytes.
pub type ByteStream = Box<dyn Read + Send>;

/// One named byte stream: a file, an object, standard input, an entry of an archive. It is opened
/// when its turn comes.
pub struct Part {
    /// What to call it in messages.
    pub name: String,
    /// Stored size in bytes, where known.
    pub size: Option<u64>,
    source: Source,
}

enum Source {
    Once(Option<Box<dyn FnOnce() -> io::Result<ByteStream> + Send>>),
    Again(Box<dyn Fn() -> io::Result<ByteStream> + Send>),
}

impl Part {
    /// A part that can be opened any number of times, such as a file. Looking into it with
    /// [`probe`](super::probe) keeps nothing open.
    pub fn new(
        name: impl Into<String>,
        size: Option<u64>,
        open: impl Fn() -> io::Result<ByteStream> + Send + 'static,
    ) -> Part {
        Part { name: name.into(), size, source: Source::Again(Box::new(open)) }
    }

    /// A part that can be opened once, such as standard input.
    pub fn once(
        name: impl Into<String>,
        size: Option<u64>,
        open: impl FnOnce() -> io::Result<ByteStream> + Send + 'static,
    ) -> Part {
        Part { name: name.into(), size, source: Source::Once(Some(Box::new(open))) }
    }

    /// A part that is in memory.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<std::sync::Arc<[u8]>>) -> Part {
        let bytes = bytes.into();
        let size = Some(bytes.len() as u64);
        Part::new(name, size, move || Ok(Box::new(Cursor::new(bytes.clone()))))
    }

    /// Opens the stream of stored bytes from its start.
    ///
    /// # Errors
    /// When it cannot be opened, or could be opened once only and was.
    pub fn open(&mut self) -> io::Result<ByteStream> {
        match &mut self.source {
            Source::Again(open) => open(),
            Source::Once(open) => match open.take() {
                Some(open) => open(),
                None => Err(io::Error::other("the stream was already read")),
            },
        }
    }

    /// Returns up to `max` first bytes; a later [`Part::open`] still begins at the start.
    pub(super) fn head(&mut self, max: usize) -> io::Result<Vec<u8>> {
        let mut stream = self.open()?;
        let mut head = Vec::new();
        let end = stream.by_ref().take(max as u64).read_to_end(&mut head);
        if let Source::Once(open) = &mut self.source {
            let rest = Cursor::new(head.clone()).chain(AfterError::new(stream, end));
            *open = Some(Box::new(move || Ok(Box::new(rest))));
        }
        Ok(head)
    }
}

/// A stream that gives an error met earlier before anything else.
struct AfterError {
    error: Option<io::Error>,
    stream: ByteStream,
}

impl AfterError {
    fn new(stream: ByteStream, end: io::Result<usize>) -> AfterError {
        AfterError { error: end.err(), stream }
    }
}

impl Read for AfterError {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.stream.read(out),
        }
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("name", &self.name).field("size", &self.size).finish()
    }
}
