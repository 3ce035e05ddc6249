//! A request, as its handler sees it.

use crate::body::Body;
use crate::head::{Head, Version};
use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;

/// A request. Go's `http.Request`; here it borrows from the connection's buffer, so that a request
/// allocates nothing.
///
/// ```
/// use gosched_http::{Request, Response};
///
/// fn handle(req: &mut Request<'_>) -> Response {
///     match (req.method(), req.path()) {
///         ("GET", "/") => Response::text("Hello, World!\n"),
///         ("POST", "/echo") => match req.read_body() {
///             Ok(body) => Response::bytes(body),
///             Err(_) => Response::new(400),
///         },
///         _ => Response::not_found(),
///     }
/// }
/// ```
pub struct Request<'a> {
    head: &'a Head<'a>,
    body: Body<'a>,
    peer: SocketAddr,
}

impl<'a> Request<'a> {
    pub(crate) fn new(head: &'a Head<'a>, body: Body<'a>, peer: SocketAddr) -> Request<'a> {
        Request { head, body, peer }
    }

    pub(crate) fn into_body(self) -> Body<'a> {
        self.body
    }

    /// The method, such as `GET`; letter case counts.
    #[must_use]
    pub fn method(&self) -> &'a str {
        self.head.method
    }

    /// What is asked for, as it was sent: mostly a path with a query.
    #[must_use]
    pub fn target(&self) -> &'a str {
        self.head.target
    }

    /// The path, not decoded: `/a%20b` for `/a%20b?c=d` and for `http://host/a%20b`; `*` for `*`.
    #[must_use]
    pub fn path(&self) -> &'a str {
        let target = self.head.target;
        let end = target.find('?').unwrap_or(target.len());
        let whole = &target[..end];
        match whole.split_once("://") {
            Some((_, rest)) if !whole.starts_with('/') => {
                rest.find('/').map_or("/", |slash| &rest[slash..])
            }
            _ => whole,
        }
    }

    /// What is behind the `?`, not decoded.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.head.target.split_once('?').map(|(_, query)| query)
    }

    /// Whether the client speaks HTTP/1.0.
    #[must_use]
    pub fn is_http10(&self) -> bool {
        self.head.version == Version::Http10
    }

    /// The value of the first field with this name, in any letter case; `None` as well if it is
    /// not UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let field = self.head.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        str::from_utf8(field.value).ok()
    }

    /// All fields of the head, in their order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.head.fields.iter().map(|field| (field.name, field.value))
    }

    /// The other side's address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// The body, to be read as it comes in. If the client waits for `100 Continue`, the first read
    /// sends it.
    pub fn body(&mut self) -> &mut Body<'a> {
        &mut self.body
    }

    /// The whole body, or what is left of it.
    ///
    /// # Errors
    /// As of reads of the [`Body`].
    pub fn read_body(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.body.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("head", &self.head).field("body", &self.body).finish()
    }
}
