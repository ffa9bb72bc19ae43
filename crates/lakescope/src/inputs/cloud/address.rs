//! Where an address leads: whose store, which bucket, which path in it.

use anyhow::{Context, Result, bail};
use object_store::ObjectStoreScheme;
use object_store::path::Path;
use url::Url;

/// Whose store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    Amazon,
    Azure,
    Google,
}

/// An address, taken apart.
#[derive(Debug)]
pub struct Address {
    /// As it was given, for messages.
    pub given: String,
    pub provider: Provider,
    /// The part that names the bucket, without a slash at its end: `s3://bucket`.
    pub root: String,
    /// The object or folder in it, as the store spells it; empty for the whole bucket.
    pub path: Path,
    /// Whether only a folder can be meant, not an object.
    pub folder: bool,
}

impl Address {
    /// Takes an address apart. Behind the bucket, a name is taken as it stands, as the providers'
    /// own tools and Hadoop do: `%3A` is three characters. Only an `https://` address is decoded.
    ///
    /// # Errors
    /// When the scheme is none of ours, no bucket is named, or no store client can spell the name.
    pub fn parse(given: &str) -> Result<Self> {
        let (scheme, rest) = given.split_once("://").unwrap_or_default();
        let provider = match scheme.to_ascii_lowercase().as_str() {
            "s3" | "s3a" => Provider::Amazon,
            "abfss" | "abfs" | "az" | "adl" | "azure" => Provider::Azure,
            "gs" => Provider::Google,
            "https" => return Self::web(given),
            _ => bail!("cannot read {given}: addresses begin with file://, s3://, abfss:// or gs://"),
        };
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            bail!("cannot read {given}: it names no bucket");
        }
        let folder = path.is_empty() || path.ends_with('/');
        let root = format!("{scheme}://{bucket}");
        Url::parse(&root).with_context(|| format!("cannot read {given}: {bucket} is no name of a bucket"))?;
        Ok(Self { given: given.to_owned(), provider, root, path: spelt(given, path)?, folder })
    }

    /// The address of a bucket as a browser has it.
    fn web(given: &str) -> Result<Self> {
        if let Some((before, _)) = given.split_once('?') {
            // What follows is a signature, which must not get into messages.
            bail!(
                "cannot read {before}?…: signed addresses are not read; copy the object, or use s3://, abfss:// or gs://"
            );
        }
        let url = Url::parse(given).with_context(|| format!("cannot read {given}: it is no address"))?;
        let provider = match ObjectStoreScheme::parse(&url) {
            Ok((ObjectStoreScheme::AmazonS3, _)) => Provider::Amazon,
            Ok((ObjectStoreScheme::MicrosoftAzure, _)) => Provider::Azure,
            _ => bail!("cannot read {given}: this is no address of a bucket; use s3://, abfss:// or gs://"),
        };
        let (_, path) = ObjectStoreScheme::parse(&url).with_context(|| format!("cannot read {given}"))?;
        let trimmed = given.trim_end_matches('/');
        let below = if path.as_ref().is_empty() { 0 } else { path.parts_count() };
        let root = trimmed.rsplitn(below + 1, '/').last().unwrap_or(trimmed).to_owned();
        Ok(Self { given: given.to_owned(), provider, root, path, folder: given.ends_with('/') })
    }
}

fn spelt(given: &str, path: &str) -> Result<Path> {
    let refused = || {
        format!(
            "cannot read {given}: names with an empty part (//), a part . or .., or control characters are not read"
        )
    };
    // The parser drops one slash at the start, which would be another name.
    let named = (!path.starts_with('/')).then(|| Path::parse(path)).with_context(refused)?;
    named.with_context(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_they_stand() {
        for (given, root, path, folder) in [
            ("s3://bucket/a b/c%3Ad+e", "s3://bucket", "a b/c%3Ad+e", false),
            ("s3a://my_bucket/größe/#1?x", "s3a://my_bucket", "größe/#1?x", false),
            ("gs://bucket/logs/", "gs://bucket", "logs", true),
            ("gs://bucket", "gs://bucket", "", true),
            ("abfss://c@account.dfs.core.windows.net/x", "abfss://c@account.dfs.core.windows.net", "x", false),
            ("https://b.s3.eu-west-1.amazonaws.com/a%20b/c", "https://b.s3.eu-west-1.amazonaws.com", "a b/c", false),
            ("https://a.blob.core.windows.net/c/x/y/", "https://a.blob.core.windows.net/c", "x/y", true),
        ] {
            let address = Address::parse(given).unwrap();
            assert_eq!((address.root.as_str(), address.path.as_ref(), address.folder), (root, path, folder), "{given}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (given, said) in [
            ("ftp://host/x", "addresses begin with"),
            ("s3:///x", "it names no bucket"),
            ("s3://bucket//x", "an empty part"),
            ("s3://bucket/a//b", "an empty part"),
            ("gs://b c/x", "is no name of a bucket"),
            ("https://example.org/x", "no address of a bucket"),
        ] {
            let error = Address::parse(given).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(given), "{error}");
        }
    }

    #[test]
    fn a_signature_is_not_repeated() {
        let error = Address::parse("https://a.blob.core.windows.net/c/x?sv=1&sig=secret").unwrap_err();
        assert!(!format!("{error:#}").contains("secret"), "{error:#}");
    }
}
