//! What all socket types have in common, said once.

/// Methods and conversions of every socket type: a struct with a field `io`, a `Pollable` of std's.
macro_rules! socket {
    ($ours:ident, $std:ty, timeouts: $($timeouts:ident)?) => {
        impl $ours {
            fn of(file: $std) -> ::std::io::Result<$ours> {
                file.set_nonblocking(true)?;
                Ok($ours { io: $crate::Pollable::new(file) })
            }

            /// A second handle to the same socket; its time-outs and deadlines are its own from
            /// now on.
            ///
            /// # Errors
            /// Too many open files.
            pub fn try_clone(&self) -> ::std::io::Result<$ours> {
                Ok($ours { io: self.io.like(self.io.get_ref().try_clone()?) })
            }

            /// Makes calls return `WouldBlock` instead of waiting, or not any more.
            ///
            /// The socket itself is nonblocking in both modes: the mode is this value's, and clones
            /// made before keep theirs.
            ///
            /// # Errors
            /// None; std's returns them.
            pub fn set_nonblocking(&self, nonblocking: bool) -> ::std::io::Result<()> {
                self.io.set_returns_at_once(nonblocking);
                Ok(())
            }

            /// The error that the kernel keeps for this socket, which forgets it.
            ///
            /// # Errors
            /// What the system answers.
            pub fn take_error(&self) -> ::std::io::Result<Option<::std::io::Error>> {
                self.io.get_ref().take_error()
            }

            /// Until when calls may wait, reads and writes alike. Go's `SetDeadline`.
            ///
            /// It counts for calls that wait already, too. Once it is over all calls fail with
            /// `TimedOut`, until it is moved or taken away.
            pub fn set_deadline(&self, deadline: Option<::std::time::Instant>) {
                self.set_read_deadline(deadline);
                self.set_write_deadline(deadline);
            }

            /// Until when reads, or accepts, may wait. Go's `SetReadDeadline`.
            pub fn set_read_deadline(&self, deadline: Option<::std::time::Instant>) {
                self.io.set_deadline($crate::Direction::Read, deadline);
            }

            /// Until when writes may wait. Go's `SetWriteDeadline`.
            pub fn set_write_deadline(&self, deadline: Option<::std::time::Instant>) {
                self.io.set_deadline($crate::Direction::Write, deadline);
            }

            /// The socket with calls that give up when `ctx` is cancelled.
            pub fn with_context<'a, C>(&'a self, ctx: &'a C) -> $crate::WithContext<'a, $ours, C>
            where
                C: ::gosched_sched::Cancels + ?Sized,
            {
                $crate::WithContext { socket: self, ctx }
            }

            /// Ends the socket's use: what waits on this handle, and every later call, fails with
            /// `NotConnected`. Go's `Close`.
            ///
            /// The socket is shut down, for clones as well. Its descriptor stays open until the
            /// value is dropped, so no other file can get its number while somebody uses it.
            pub fn close(&self) {
                self.io.close();
                $crate::sys::shut_down(self.io.get_ref());
            }
        }

        $(socket!(@$timeouts $ours);)?

        impl ::std::fmt::Debug for $ours {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.io.fmt(f)
            }
        }

        impl ::std::os::fd::AsFd for $ours {
            fn as_fd(&self) -> ::std::os::fd::BorrowedFd<'_> {
                self.io.get_ref().as_fd()
            }
        }

        impl ::std::os::fd::AsRawFd for $ours {
            fn as_raw_fd(&self) -> ::std::os::fd::RawFd {
                self.io.get_ref().as_raw_fd()
            }
        }

        impl ::std::os::fd::IntoRawFd for $ours {
            fn into_raw_fd(self) -> ::std::os::fd::RawFd {
                <$std>::from(self).into_raw_fd()
            }
        }

        impl ::std::os::fd::FromRawFd for $ours {
            unsafe fn from_raw_fd(fd: ::std::os::fd::RawFd) -> $ours {
                // SAFETY: by the caller.
                $ours::from(unsafe { <$std>::from_raw_fd(fd) })
            }
        }

        impl From<::std::os::fd::OwnedFd> for $ours {
            fn from(fd: ::std::os::fd::OwnedFd) -> $ours {
                $ours::from(<$std>::from(fd))
            }
        }

        impl From<$ours> for ::std::os::fd::OwnedFd {
            fn from(socket: $ours) -> ::std::os::fd::OwnedFd {
                <$std>::from(socket).into()
            }
        }

        /// The socket becomes nonblocking, for all of its clones.
        impl From<$std> for $ours {
            fn from(socket: $std) -> $ours {
                // It fails for no open socket; one that blocked would hold a thread, no more.
                let _ = socket.set_nonblocking(true);
                let ours = $ours { io: $crate::Pollable::new(socket) };
                $(socket!(@take_over $timeouts ours);)?
                ours
            }
        }

        /// The socket blocks again, unless [`set_nonblocking`](Self::set_nonblocking) says
        /// otherwise; and so it does for all of its clones, which then hold a thread while they
        /// wait.
        impl From<$ours> for $std {
            fn from(socket: $ours) -> $std {
                let at_once = socket.io.returns_at_once();
                $(socket!(@hand_back $timeouts socket);)?
                let socket = socket.io.into_inner();
                let _ = socket.set_nonblocking(at_once);
                socket
            }
        }
    };

    (@take_over both $ours:ident) => {
        let limits = [
            ($crate::Direction::Read, $ours.io.get_ref().read_timeout()),
            ($crate::Direction::Write, $ours.io.get_ref().write_timeout()),
        ];
        for (direction, limit) in limits {
            if let Ok(limit) = limit {
                let _ = $ours.io.set_timeout(direction, limit);
            }
        }
    };

    (@hand_back both $ours:ident) => {
        let _ = $ours.io.get_ref().set_read_timeout($ours.io.timeout($crate::Direction::Read));
        let _ = $ours.io.get_ref().set_write_timeout($ours.io.timeout($crate::Direction::Write));
    };

    (@both $ours:ident) => {
        impl $ours {
            /// How long each read that begins from now on may wait; then it fails with `TimedOut`.
            ///
            /// # Errors
            /// A time-out of zero.
            pub fn set_read_timeout(
                &self,
                timeout: Option<::std::time::Duration>,
            ) -> ::std::io::Result<()> {
                self.io.set_timeout($crate::Direction::Read, timeout)
            }

            /// As [`set_read_timeout`](Self::set_read_timeout), for writes.
            ///
            /// # Errors
            /// A time-out of zero.
            pub fn set_write_timeout(
                &self,
                timeout: Option<::std::time::Duration>,
            ) -> ::std::io::Result<()> {
                self.io.set_timeout($crate::Direction::Write, timeout)
            }

            /// How long each read may wait.
            ///
            /// # Errors
            /// None; std's returns them.
            pub fn read_timeout(&self) -> ::std::io::Result<Option<::std::time::Duration>> {
                Ok(self.io.timeout($crate::Direction::Read))
            }

            /// How long each write may wait.
            ///
            /// # Errors
            /// None; std's returns them.
            pub fn write_timeout(&self) -> ::std::io::Result<Option<::std::time::Duration>> {
                Ok(self.io.timeout($crate::Direction::Write))
            }
        }
    };
}
pub(crate) use socket;

/// `Read` and `Write` for a stream type and for references to it.
///
/// `short_read_empties`: a read ends early only where there is nothing more, see `Pollable::read`.
macro_rules! stream {
    ($ours:ident, short_read_empties: $empties:expr) => {
        impl ::std::io::Read for &$ours {
            #[inline]
            fn read(&mut self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
                self.io.read($empties, buffer.len(), |mut file| file.read(buffer))
            }

            fn read_vectored(
                &mut self,
                buffers: &mut [::std::io::IoSliceMut<'_>],
            ) -> ::std::io::Result<usize> {
                self.io.call($crate::Direction::Read, |mut file| file.read_vectored(buffers))
            }
        }

        impl ::std::io::Write for &$ours {
            #[inline]
            fn write(&mut self, bytes: &[u8]) -> ::std::io::Result<usize> {
                self.io.call($crate::Direction::Write, |mut file| file.write(bytes))
            }

            fn write_vectored(
                &mut self,
                slices: &[::std::io::IoSlice<'_>],
            ) -> ::std::io::Result<usize> {
                self.io.call($crate::Direction::Write, |mut file| file.write_vectored(slices))
            }

            fn flush(&mut self) -> ::std::io::Result<()> {
                Ok(())
            }
        }

        impl<C: ::gosched_sched::Cancels + ?Sized> ::std::io::Read
            for $crate::WithContext<'_, $ours, C>
        {
            fn read(&mut self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
                let direction = $crate::Direction::Read;
                self.socket.io.call_ctx(self.ctx, direction, |mut file| file.read(buffer))
            }

            fn read_vectored(
                &mut self,
                buffers: &mut [::std::io::IoSliceMut<'_>],
            ) -> ::std::io::Result<usize> {
                let direction = $crate::Direction::Read;
                self.socket.io.call_ctx(self.ctx, direction, |mut file| file.read_vectored(buffers))
            }
        }

        impl<C: ::gosched_sched::Cancels + ?Sized> ::std::io::Write
            for $crate::WithContext<'_, $ours, C>
        {
            fn write(&mut self, bytes: &[u8]) -> ::std::io::Result<usize> {
                let direction = $crate::Direction::Write;
                self.socket.io.call_ctx(self.ctx, direction, |mut file| file.write(bytes))
            }

            fn write_vectored(
                &mut self,
                slices: &[::std::io::IoSlice<'_>],
            ) -> ::std::io::Result<usize> {
                let direction = $crate::Direction::Write;
                self.socket.io.call_ctx(self.ctx, direction, |mut file| file.write_vectored(slices))
            }

            fn flush(&mut self) -> ::std::io::Result<()> {
                Ok(())
            }
        }

        impl ::std::io::Read for $ours {
            #[inline]
            fn read(&mut self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
                (&*self).read(buffer)
            }

            fn read_vectored(
                &mut self,
                buffers: &mut [::std::io::IoSliceMut<'_>],
            ) -> ::std::io::Result<usize> {
                (&*self).read_vectored(buffers)
            }
        }

        impl ::std::io::Write for $ours {
            #[inline]
            fn write(&mut self, bytes: &[u8]) -> ::std::io::Result<usize> {
                (&*self).write(bytes)
            }

            fn write_vectored(
                &mut self,
                slices: &[::std::io::IoSlice<'_>],
            ) -> ::std::io::Result<usize> {
                (&*self).write_vectored(slices)
            }

            fn flush(&mut self) -> ::std::io::Result<()> {
                Ok(())
            }
        }

        impl $ours {
            /// Ends reads, writes, or both, for all clones; calls that wait return: reads with what
            /// is left, then the end; writes with `BrokenPipe`.
            ///
            /// # Errors
            /// A socket that is not connected.
            pub fn shutdown(&self, how: ::std::net::Shutdown) -> ::std::io::Result<()> {
                let result = self.io.get_ref().shutdown(how);
                self.io.look_again($crate::Direction::Read);
                self.io.look_again($crate::Direction::Write);
                result
            }
        }
    };
}
pub(crate) use stream;

/// Methods that are std's as they are: they never wait.
macro_rules! delegate {
    ($ours:ident: $(
        $(#[$doc:meta])*
        $name:ident($($arg:ident: $type:ty),*) -> $out:ty;
    )*) => {
        impl $ours {
            $(
                $(#[$doc])*
                ///
                /// std's method of the same name.
                ///
                /// # Errors
                /// What the system answers.
                pub fn $name(&self, $($arg: $type),*) -> ::std::io::Result<$out> {
                    self.io.get_ref().$name($($arg),*)
                }
            )*
        }
    };
}
pub(crate) use delegate;
