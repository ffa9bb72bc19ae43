//! Objects in a bucket: `s3://`, `abfss://` and `gs://` addresses.
//!
//! Credentials come from the variables that each provider's own tools read (`AWS_*`, `AZURE_*`,
//! `GOOGLE_*`), or from the machine's role. Objects are streamed in pieces, a few ahead of the
//! reader; each piece is asked for again when its connection breaks.

use super::{Findings, Place, in_place, single};
use anyhow::{Context, Error, Result, anyhow, bail};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, ObjectStoreScheme, RetryConfig};
use read::source::{Entry, Part};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};
use url::Url;

/// Bytes asked for at once.
const PIECE_BYTES: u64 = 4 << 20;
/// Pieces asked for ahead of the reader.
const AHEAD: usize = 4;
/// Objects below a prefix that are looked at.
const MAX_OBJECTS: usize = 200_000;
/// A request is repeated so often …
const MAX_RETRIES: usize = 6;
/// … and for so long, so that a wrong address does not hang for minutes.
const RETRY_FOR: Duration = Duration::from_secs(60);

struct Bucket {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    /// `s3://bucket`, for messages.
    base: String,
    /// What listed paths are relative to; with a slash at its end unless empty.
    below: String,
}

/// Finds the logs at an address: one object, or all below a prefix.
pub fn find(address: &str, as_text: bool) -> Result<Findings> {
    let url = Url::parse(address).with_context(|| format!("cannot read {address}: it is no address"))?;
    let (scheme, path) = ObjectStoreScheme::parse(&url)
        .map_err(|_| anyhow!("cannot read {address}: addresses begin with file://, s3://, abfss:// or gs://"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let hint = |error: object_store::Error| explained(address, &scheme, error);
    let store = open(&url, &scheme).map_err(hint)?;
    let base = address.split_at(address.len() - url.path().trim_start_matches('/').len().min(address.len())).0;
    let mut bucket =
        Bucket { store, runtime: Arc::new(runtime), base: base.trim_end_matches('/').to_owned(), below: String::new() };
    if !address.ends_with('/')
        && let Some(size) = bucket.size(&path).map_err(hint)?
    {
        return single(&bucket, path.as_ref(), Some(size), as_text);
    }
    bucket.below = if path.as_ref().is_empty() { String::new() } else { format!("{path}/") };
    let listing = bucket.list(&path).map_err(hint)?;
    if listing.is_empty() {
        bail!("cannot read {address}: there is no such object, and none begins with this path");
    }
    let all = in_place(&bucket, &listing);
    if all.found.is_empty() {
        let why = all.skipped.first().map(|(name, why)| format!("; {name} {why}")).unwrap_or_default();
        bail!("no event log at {address}: none of {} objects is one{why}", listing.len());
    }
    Ok(all)
}

fn open(url: &Url, scheme: &ObjectStoreScheme) -> object_store::Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig { max_retries: MAX_RETRIES, retry_timeout: RETRY_FOR, ..RetryConfig::default() };
    Ok(match scheme {
        ObjectStoreScheme::AmazonS3 => {
            Arc::new(AmazonS3Builder::from_env().with_url(url.as_str()).with_retry(retry).build()?)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            Arc::new(MicrosoftAzureBuilder::from_env().with_url(url.as_str()).with_retry(retry).build()?)
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            Arc::new(GoogleCloudStorageBuilder::from_env().with_url(url.as_str()).with_retry(retry).build()?)
        }
        other => {
            let source = format!("{other:?} addresses are not read; use s3://, abfss:// or gs://").into();
            return Err(object_store::Error::Generic { store: "address", source });
        }
    })
}

/// The error in a reader's words, with what to look at next.
fn explained(address: &str, scheme: &ObjectStoreScheme, error: object_store::Error) -> Error {
    let variables = match scheme {
        ObjectStoreScheme::AmazonS3 => "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT",
        ObjectStoreScheme::MicrosoftAzure => {
            "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_CLIENT_ID"
        }
        _ => "GOOGLE_APPLICATION_CREDENTIALS",
    };
    let next = match &error {
        object_store::Error::NotFound { .. } => "check the bucket's name and the path".to_owned(),
        object_store::Error::PermissionDenied { .. } => {
            "check that this identity may list and read the path".to_owned()
        }
        _ => format!("check the address and {variables}"),
    };
    let said = error.to_string();
    anyhow!("cannot read {address}: {}; {next}", said.lines().next().unwrap_or_default().trim_end_matches(['.', ' ']))
}

impl Bucket {
    /// Size of an object; `None` when there is none of this name.
    fn size(&self, path: &Path) -> object_store::Result<Option<u64>> {
        if path.as_ref().is_empty() {
            return Ok(None);
        }
        match self.runtime.block_on(self.store.head(path)) {
            Ok(about) => Ok(Some(about.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self, prefix: &Path) -> object_store::Result<Vec<Entry>> {
        let prefix = (!prefix.as_ref().is_empty()).then_some(prefix);
        let objects = self.store.list(prefix).take(MAX_OBJECTS).try_collect::<Vec<_>>();
        let objects = self.runtime.block_on(objects)?;
        let mut listing: Vec<Entry> = objects
            .into_iter()
            .filter_map(|object| {
                let path = object.location.as_ref().strip_prefix(self.below.as_str())?.to_owned();
                Some(Entry { path, size: Some(object.size) })
            })
            .collect();
        listing.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    fn path(&self, path: &str) -> Path {
        Path::from(format!("{}{path}", self.below))
    }
}

impl Place for Bucket {
    fn name(&self, path: &str) -> String {
        format!("{}/{}{path}", self.base, self.below)
    }

    fn part(&self, path: &str, size: Option<u64>) -> Part {
        let (store, runtime, at) = (self.store.clone(), self.runtime.clone(), self.path(path));
        let size = size.unwrap_or_default();
        Part::new(self.name(path), Some(size), move || {
            Ok(Box::new(Pieces::start(runtime.clone(), store.clone(), at.clone(), size)))
        })
    }

    fn seekable(&self, path: &str) -> Result<File> {
        let cannot = || format!("cannot read {}", self.name(path));
        let size = self.size(&self.path(path)).with_context(cannot)?.unwrap_or_default();
        let mut file = tempfile::tempfile().with_context(cannot)?;
        let mut pieces = Pieces::start(self.runtime.clone(), self.store.clone(), self.path(path), size);
        io::copy(&mut pieces, &mut file).with_context(cannot)?;
        file.flush()?;
        file.rewind()?;
        Ok(file)
    }
}

/// An object as a stream of bytes.
struct Pieces {
    pieces: Receiver<object_store::Result<bytes::Bytes>>,
    now: Cursor<bytes::Bytes>,
    /// Kept so that the pieces go on coming as long as somebody reads.
    _runtime: Arc<Runtime>,
}

impl Pieces {
    fn start(runtime: Arc<Runtime>, store: Arc<dyn ObjectStore>, path: Path, size: u64) -> Self {
        let (send, pieces) = channel(1);
        runtime.spawn(async move {
            let starts = (0..size).step_by(PIECE_BYTES as usize);
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
        Self { pieces, now: Cursor::new(bytes::Bytes::new()), _runtime: runtime }
    }
}

/// One piece. The client repeats a request that fails; a connection that breaks while bytes come
/// is begun anew here.
async fn piece(store: &dyn ObjectStore, path: &Path, from: u64, to: u64) -> object_store::Result<bytes::Bytes> {
    const TRIES: u32 = 4;
    let mut tried = 0;
    loop {
        tried += 1;
        match store.get_range(path, from..to).await {
            Err(object_store::Error::Generic { .. }) if tried < TRIES => {
                tokio::time::sleep(Duration::from_millis(200 << tried)).await;
            }
            done => return done,
        }
    }
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.now.read(out)?;
            if n > 0 || out.is_empty() {
                return Ok(n);
            }
            match self.pieces.blocking_recv() {
                Some(Ok(piece)) => self.now = Cursor::new(piece),
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(0),
            }
        }
    }
}
