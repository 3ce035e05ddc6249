//! Why a request is answered by the server itself, after which its connection ends.

/// What is wrong with a request, as its status says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not HTTP, or its end can't be told for sure (RFC 9112, 2.2, 3.2, 6.3, 7.1).
    Malformed,
    /// The head or the body took too long.
    Late,
    /// The body is longer than the limit.
    BodyTooLarge,
    /// The request line alone is longer than the limit of the head.
    TargetTooLong,
    /// `Expect` asks for something else than `100-continue`.
    Expectation,
    /// The head is longer than its limit, or has too many fields.
    HeadTooLarge,
    /// The handler panicked.
    Panicked,
    /// A transfer coding or a method that this server doesn't have.
    NotImplemented,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    Version,
}

impl Refusal {
    pub(crate) fn status(self) -> u16 {
        match self {
            Refusal::Malformed => 400,
            Refusal::Late => 408,
            Refusal::BodyTooLarge => 413,
            Refusal::TargetTooLong => 414,
            Refusal::Expectation => 417,
            Refusal::HeadTooLarge => 431,
            Refusal::Panicked => 500,
            Refusal::NotImplemented => 501,
            Refusal::Version => 505,
        }
    }
}
