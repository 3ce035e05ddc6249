//! `select!`: crossbeam-channel's syntax.
//!
//! The cases are brought into one form, one step of recursion each: `[end index place kind (end's
//! expression) (message) pattern body]`, where `end`, `index` and `place` are identifiers of that step and so
//! name different variables for each case. The rest is repetition.

/// Waits until one of several operations is ready, and does it.
///
/// Go's `select`, in crossbeam-channel's words. Any number of `recv` and `send` cases; at most one
/// `default`, taken at once if nothing is ready, or after a time. Among several that are ready one
/// is chosen at random. The message of a `send` is evaluated only if it is sent. `select! {}` waits
/// for ever.
///
/// ```
/// use gosched_channel::{after, bounded, select};
/// use std::time::Duration;
///
/// let (s1, r1) = bounded(1);
/// let (s2, _r2) = bounded(0);
/// s1.send(7).unwrap();
/// let seven = select! {
///     recv(r1) -> message => message.unwrap(),
///     send(s2, "nobody receives it") -> sent => { sent.unwrap(); 0 }
///     recv(after(Duration::from_secs(60))) -> _ => panic!("too late"),
/// };
/// assert_eq!(seven, 7);
///
/// let empty = select! {
///     recv(r1) -> _ => false,
///     default => true,
/// };
/// assert!(empty);
///
/// select! {
///     recv(r1) -> _ => panic!("nothing was sent"),
///     default(Duration::from_millis(1)) => {}
/// }
/// ```
#[macro_export]
macro_rules! select {
    () => { $crate::internal::select_nothing() };
    ($($tokens:tt)*) => { $crate::__select!(@list false [] [] $($tokens)*) };
}

/// As [`select!`], but among several that are ready the first in the list is chosen.
///
/// ```
/// use gosched_channel::{select_biased, unbounded};
/// let (s, r) = unbounded();
/// s.send(1).unwrap();
/// select_biased! {
///     recv(r) -> message => assert_eq!(message, Ok(1)),
///     send(s, 2) -> _ => unreachable!(),
/// }
/// ```
#[macro_export]
macro_rules! select_biased {
    () => { $crate::internal::select_nothing() };
    ($($tokens:tt)*) => { $crate::__select!(@list true [] [] $($tokens)*) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    // All cases are in one form.
    (@list $bias:tt $cases:tt $default:tt) => {
        $crate::__select!(@run $bias $cases $default)
    };
    (@list $bias:tt $cases:tt $default:tt default => $($tail:tt)*) => {
        $crate::__select!(@list $bias $cases $default default() => $($tail)*)
    };
    (@list $bias:tt $cases:tt $default:tt
        $kind:ident ($($args:tt)*) $(-> $res:pat)? => { $($body:tt)* }, $($tail:tt)*
    ) => {
        $crate::__select!(@case $bias $cases $default
            [$kind ($($args)*) ($($res)?) { $($body)* }] $($tail)*)
    };
    (@list $bias:tt $cases:tt $default:tt
        $kind:ident ($($args:tt)*) $(-> $res:pat)? => $body:expr, $($tail:tt)*
    ) => {
        $crate::__select!(@case $bias $cases $default
            [$kind ($($args)*) ($($res)?) { $body }] $($tail)*)
    };
    // After a block the comma may be missing.
    (@list $bias:tt $cases:tt $default:tt
        $kind:ident ($($args:tt)*) $(-> $res:pat)? => { $($body:tt)* } $($tail:tt)*
    ) => {
        $crate::__select!(@case $bias $cases $default
            [$kind ($($args)*) ($($res)?) { $($body)* }] $($tail)*)
    };
    (@list $bias:tt $cases:tt $default:tt
        $kind:ident ($($args:tt)*) $(-> $res:pat)? => $body:expr
    ) => {
        $crate::__select!(@case $bias $cases $default [$kind ($($args)*) ($($res)?) { $body }])
    };
    (@list $bias:tt $cases:tt $default:tt $($tail:tt)*) => {
        compile_error!(concat!(
            "expected `recv(r) -> pattern => body`, `send(s, message) -> pattern => body`, \
             `default => body` or `default(timeout) => body`, with commas between them; found `",
            stringify!($($tail)*), "`"
        ))
    };

    (@case $bias:tt [$($cases:tt)*] $default:tt
        [recv ($r:expr $(,)?) ($res:pat) $body:tt] $($tail:tt)*
    ) => {
        $crate::__select!(@list $bias
            [$($cases)* [end index place recv ($r) () ($res) $body]] $default $($tail)*)
    };
    (@case $bias:tt [$($cases:tt)*] $default:tt
        [send ($s:expr, $m:expr $(,)?) ($res:pat) $body:tt] $($tail:tt)*
    ) => {
        $crate::__select!(@list $bias
            [$($cases)* [end index place send ($s) ($m) ($res) $body]] $default $($tail)*)
    };
    (@case $bias:tt $cases:tt [] [default ($($timeout:expr)? $(,)?) () $body:tt] $($tail:tt)*) => {
        $crate::__select!(@list $bias $cases [($($timeout)?) $body] $($tail)*)
    };
    (@case $bias:tt $cases:tt [$($default:tt)+]
        [default $args:tt () $body:tt] $($tail:tt)*
    ) => {
        compile_error!("there can be only one `default` case in a `select!` block")
    };
    (@case $bias:tt $cases:tt $default:tt [default $args:tt ($res:pat) $body:tt] $($tail:tt)*) => {
        compile_error!("expected `=>` after `default` case, found `->`")
    };
    (@case $bias:tt $cases:tt $default:tt [recv $args:tt () $body:tt] $($tail:tt)*) => {
        compile_error!("expected `->` after `recv` case, found `=>`")
    };
    (@case $bias:tt $cases:tt $default:tt [send $args:tt () $body:tt] $($tail:tt)*) => {
        compile_error!("expected `->` after `send` operation, found `=>`")
    };
    (@case $bias:tt $cases:tt $default:tt [recv $args:tt $res:tt $body:tt] $($tail:tt)*) => {
        compile_error!(concat!("invalid argument list in `recv", stringify!($args), "`"))
    };
    (@case $bias:tt $cases:tt $default:tt [send $args:tt $res:tt $body:tt] $($tail:tt)*) => {
        compile_error!(concat!("invalid argument list in `send", stringify!($args), "`"))
    };
    (@case $bias:tt $cases:tt $default:tt [default $args:tt $res:tt $body:tt] $($tail:tt)*) => {
        compile_error!(concat!("invalid argument list in `default", stringify!($args), "`"))
    };
    (@case $bias:tt $cases:tt $default:tt [$kind:ident $args:tt $res:tt $body:tt] $($tail:tt)*) => {
        compile_error!(concat!(
            "expected one of `recv`, `send`, or `default`, found `", stringify!($kind), "`"
        ))
    };

    // Nothing but a default.
    (@run $bias:tt [] [() $body:tt]) => { $body };
    (@run $bias:tt [] [($timeout:expr) $body:tt]) => {{
        $crate::internal::wait($timeout);
        $body
    }};
    // A single receive is just that.
    (@run $bias:tt [[$end:ident $index:ident $place:ident recv ($r:expr) () ($res:pat) $body:tt]] []) => {
        match &$r {
            $end => {
                let _result = $crate::internal::recv::end($end).recv();
                let $res = _result;
                $body
            }
        }
    };
    (@run $bias:tt [[$end:ident $index:ident $place:ident recv ($r:expr) () ($res:pat) $body:tt]]
        [() $default:tt]
    ) => {
        match &$r {
            $end => match $crate::internal::recv::end($end).try_recv() {
                ::std::result::Result::Err($crate::TryRecvError::Empty) => $default,
                _result => {
                    let _result = _result.map_err(|_| $crate::RecvError);
                    let $res = _result;
                    $body
                }
            },
        }
    };
    (@run $bias:tt [[$end:ident $index:ident $place:ident recv ($r:expr) () ($res:pat) $body:tt]]
        [($timeout:expr) $default:tt]
    ) => {
        match &$r {
            $end => match $crate::internal::recv::end($end).recv_timeout($timeout) {
                ::std::result::Result::Err($crate::RecvTimeoutError::Timeout) => $default,
                _result => {
                    let _result = _result.map_err(|_| $crate::RecvError);
                    let $res = _result;
                    $body
                }
            },
        }
    };
    (@run $bias:tt
        [$([$end:ident $index:ident $place:ident $kind:ident ($r:expr) $message:tt ($res:pat) $body:tt])+]
        []
    ) => {
        match ($(&$r,)+) {
            ($($end,)+) => {
                $crate::__select!(@ends $($end $index $place $kind)+);
                let _selected = $crate::internal::select(
                    &mut [$($crate::internal::$kind::case($end, $index, &$place)),+],
                    $bias,
                );
                $crate::__select!(@complete _selected { unreachable!("one case is chosen") }
                    $([$end $index $place $kind $message ($res) $body])+)
            }
        }
    };
    (@run $bias:tt
        [$([$end:ident $index:ident $place:ident $kind:ident ($r:expr) $message:tt ($res:pat) $body:tt])+]
        [($($timeout:expr)?) $default:tt]
    ) => {
        match ($(&$r,)+) {
            ($($end,)+) => {
                $crate::__select!(@ends $($end $index $place $kind)+);
                let _selected = $crate::__select!(@call
                    (&mut [$($crate::internal::$kind::case($end, $index, &$place)),+])
                    ($($timeout)?)
                    $bias
                );
                $crate::__select!(@complete _selected $default
                    $([$end $index $place $kind $message ($res) $body])+)
            }
        }
    };

    (@ends $($end:ident $index:ident $place:ident $kind:ident)+) => {
        let mut _count = 0usize;
        $(
            let $end = $crate::internal::$kind::end($end);
            let $place = $crate::internal::$kind::place($end);
            let $index = _count;
            _count += 1;
        )+
        let _ = _count;
    };

    (@call ($cases:expr) () $bias:tt) => { $crate::internal::try_select($cases, $bias) };
    (@call ($cases:expr) ($timeout:expr) $bias:tt) => {
        $crate::internal::select_timeout($cases, $timeout, $bias)
    };

    (@complete $selected:ident $otherwise:tt
        $([$end:ident $index:ident $place:ident $kind:ident ($($message:expr)?) ($res:pat) $body:tt])+
    ) => {
        $(
            if $selected.index() == $index {
                let _result = $selected.$kind($end $(, $message)?);
                let $res = _result;
                $body
            } else
        )+ {
            ::std::mem::drop($selected);
            $otherwise
        }
    };
}
