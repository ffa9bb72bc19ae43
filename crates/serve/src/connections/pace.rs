//! Bytes that come and go at some pace: what stands still ends with an error.

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Fewer bytes than this of a request within the timeout is no progress: a byte now and then would
/// hold a place as well as none.
const LEAST_BYTES: usize = 1 << 10;
/// How long, and in which pieces, what a client still sends after its answer is taken in.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 16 << 10;

/// Waiting for a peer. The clock runs while nothing moves.
#[derive(Debug)]
struct Pace {
    timeout: Duration,
    least_bytes: usize,
    moved_bytes: usize,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    fn new(timeout: Duration, least_bytes: usize) -> Self {
        Self { timeout, least_bytes, moved_bytes: 0, waiting: None }
    }

    fn moved(&mut self, bytes: usize) {
        self.moved_bytes += bytes;
        if self.moved_bytes >= self.least_bytes {
            self.moved_bytes = 0;
            self.waiting = None;
        }
    }

    /// To be asked when nothing moves: an error once too little has moved for too long.
    fn poll_wait(&mut self, cx: &mut Context<'_>, what: &str) -> Poll<Error> {
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.timeout)));
        ready!(waiting.as_mut().poll(cx));
        let seconds = self.timeout.as_secs_f64();
        let text = format!("{what} within {seconds} s (--client-timeout)");
        Poll::Ready(Error::new(ErrorKind::TimedOut, text))
    }
}

/// The body of a request.
#[derive(Debug)]
pub struct PacedBody {
    body: Incoming,
    pace: Pace,
}

impl PacedBody {
    pub fn new(body: Incoming, timeout: Duration) -> Self {
        Self { body, pace: Pace::new(timeout, LEAST_BYTES) }
    }
}

impl HttpBody for PacedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.pace.moved(frame.data_ref().map_or(0, Bytes::len));
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(other) => Poll::Ready(other.map(|frame| frame.map_err(Into::into))),
            Poll::Pending => {
                let error = ready!(self.pace.poll_wait(cx, &format!("fewer than {LEAST_BYTES} bytes came")));
                Poll::Ready(Some(Err(error.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection whose peer must take what is written.
#[derive(Debug)]
pub struct PacedStream {
    stream: TcpStream,
    pace: Pace,
    lingers: Option<Pin<Box<Sleep>>>,
}

impl PacedStream {
    pub fn new(stream: TcpStream, timeout: Duration) -> Self {
        // A peer makes room by thousands of bytes, or not at all.
        Self { stream, pace: Pace::new(timeout, 1), lingers: None }
    }

    fn paced(&mut self, cx: &mut Context<'_>, written: Poll<Result<usize>>) -> Poll<Result<usize>> {
        if let Poll::Ready(written) = written {
            self.pace.moved(*written.as_ref().unwrap_or(&0));
            return Poll::Ready(written);
        }
        self.pace.poll_wait(cx, "nothing was taken").map(Err)
    }
}

impl AsyncRead for PacedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, from);
        self.paced(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        self.paced(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Ends what is written, then takes in what the peer is still sending: closing in the middle of
    /// that would make its system throw the answer away unread, such as that a log is too large.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.lingers.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        let lingers = self.lingers.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if lingers.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; LINGER_BYTES];
        loop {
            let mut rest = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut rest))?;
            if rest.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
