//! An object as a stream of bytes.

use super::trouble;
use bytes::Bytes;
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};

/// Bytes of the first piece. Looking what an object is needs no more, and a folder may hold
/// thousands to look at; so nothing is asked for ahead before somebody reads on.
const FIRST_BYTES: u64 = 64 << 10;
/// Bytes of every other piece.
const PIECE_BYTES: u64 = 4 << 20;
/// Pieces asked for ahead of the reader.
const AHEAD: usize = 4;
/// Times that a piece is asked for …
const TRIES: u32 = 4;
/// … and how long to wait before the second time; doubled each time.
const WAIT: Duration = Duration::from_millis(400);

/// An object that can be read.
#[derive(Clone)]
pub struct Object {
    pub store: Arc<dyn ObjectStore>,
    /// Runs the requests.
    pub runtime: Arc<Runtime>,
    pub path: Path,
    /// Size in bytes.
    pub size: u64,
}

/// The bytes of an object, from its start.
pub struct Pieces {
    object: Object,
    now: Cursor<Bytes>,
    begun: bool,
    rest: Option<Receiver<object_store::Result<Bytes>>>,
}

impl Pieces {
    pub fn new(object: Object) -> Self {
        Self { object, now: Cursor::default(), begun: false, rest: None }
    }

    /// The next piece; `None` at the end.
    fn next(&mut self) -> Option<object_store::Result<Bytes>> {
        let Object { store, runtime, path, size } = &self.object;
        let first = FIRST_BYTES.min(*size);
        if !self.begun {
            self.begun = true;
            return (first > 0).then(|| runtime.block_on(piece(&**store, path, 0, first)));
        }
        if first == *size {
            return None;
        }
        self.rest.get_or_insert_with(|| coming(self.object.clone(), first)).blocking_recv()
    }
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.now.read(out)?;
            if n > 0 || out.is_empty() {
                return Ok(n);
            }
            match self.next() {
                Some(Ok(piece)) => self.now = Cursor::new(piece),
                Some(Err(error)) => return Err(io::Error::other(trouble::said(&error))),
                None => return Ok(0),
            }
        }
    }
}

/// The pieces from a place on, in order, some asked for ahead.
fn coming(object: Object, from: u64) -> Receiver<object_store::Result<Bytes>> {
    let (send, pieces) = channel(1);
    let Object { store, runtime, path, size } = object;
    runtime.spawn(async move {
        let starts = (from..size).step_by(PIECE_BYTES as usize);
        let fetch = |from: u64| {
            let (store, path) = (store.clone(), path.clone());
            async move { piece(&*store, &path, from, (from + PIECE_BYTES).min(size)).await }
        };
        let mut coming = stream::iter(starts).map(fetch).buffered(AHEAD);
        while let Some(piece) = coming.next().await {
            let failed = piece.is_err();
            // The reader is gone when it had enough.
            if send.send(piece).await.is_err() || failed {
                return;
            }
        }
    });
    pieces
}

/// One piece. The client repeats a request that fails; a connection that breaks while bytes come
/// is begun anew here.
async fn piece(store: &dyn ObjectStore, path: &Path, from: u64, to: u64) -> object_store::Result<Bytes> {
    for tried in 0..TRIES - 1 {
        match store.get_range(path, from..to).await {
            Err(object_store::Error::Generic { .. }) => tokio::time::sleep(WAIT * 2u32.pow(tried)).await,
            done => return done,
        }
    }
    store.get_range(path, from..to).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn an_object_comes_whole_whatever_its_size() {
        let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap());
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        for size in [0, 1, FIRST_BYTES, FIRST_BYTES + 1, FIRST_BYTES + 2 * PIECE_BYTES + 7] {
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let path = Path::from("x");
            runtime.block_on(store.put(&path, bytes.clone().into())).unwrap();
            let object = Object { store: store.clone(), runtime: runtime.clone(), path, size };
            let mut read = Vec::new();
            Pieces::new(object).read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{size}");
        }
    }
}
