//! Causes of HTTP servers.

causes! {
    no_keepalive,
    compression,
    version,
    larger_response,
    few_workers,
    no_sendfile,
    sync_logging,
    pauses,
    bad_backend,
}
