//! Connections of clients. One that stands still is let go, so that it holds no place, thread or
//! memory that others need; how long something takes in all does not matter.

mod pace;

use crate::Limits;
use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pace::{PacedBody, PacedStream};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How long to wait when no connection can be taken, because the process has too many files open.
const TOO_MANY_FILES: Duration = Duration::from_millis(500);

/// Answers requests on `listener` until `stop`; those that are under way then may end.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: impl Future<Output = ()>) {
    let (stopping, listening) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                tokio::spawn(converse(stream, peer, router.clone(), limits.client_timeout, listening.clone()));
            }
            Err(error) if is_of_peer(error.kind()) => {}
            Err(_) => tokio::time::sleep(TOO_MANY_FILES).await,
        }
    }
    drop((listener, listening));
    // Every connection listens for this, and has ended when none does any more.
    stopping.send_replace(());
    stopping.closed().await;
}

fn is_of_peer(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

/// Answers one client until it, or the server, has had enough.
async fn converse(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    timeout: Duration,
    mut stopping: watch::Receiver<()>,
) {
    // Small answers go out at once; where that cannot be had they go out a little later.
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(|body| PacedBody::new(body, timeout));
        request.extensions_mut().insert(ConnectInfo(peer));
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(timeout);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(PacedStream::new(stream, timeout)), answer));
    // What goes wrong here is between client and network: there is nobody to tell.
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
