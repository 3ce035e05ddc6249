//! WebSockets: tungstenite on both ends.

use gosched::go;
use gosched::net::{TcpListener, TcpStream};
use tungstenite::Message;

#[gosched::test(timeout = "600s")]
fn many_clients_talk_at_once() {
    const CLIENTS: usize = 50;
    const MESSAGES: usize = 100;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = go(move || {
        let handlers: Vec<_> = listener
            .incoming()
            .take(CLIENTS)
            .map(|socket| {
                let socket = socket.unwrap();
                go(move || {
                    let mut socket = tungstenite::accept(socket).unwrap();
                    let mut echoed = 0;
                    loop {
                        match socket.read() {
                            Ok(message) if message.is_text() => {
                                socket.send(message).unwrap();
                                echoed += 1;
                            }
                            Ok(_) => {}
                            Err(tungstenite::Error::ConnectionClosed) => return echoed,
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        handlers.into_iter().map(|handler| handler.join().unwrap()).sum::<usize>()
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            go(move || {
                let stream = TcpStream::connect(address).unwrap();
                let (mut socket, _) = tungstenite::client("ws://localhost/", stream).unwrap();
                for number in 0..MESSAGES {
                    let text = format!("message {number} of {client}");
                    socket.send(Message::text(text.clone())).unwrap();
                    assert_eq!(socket.read().unwrap().into_text().unwrap().as_str(), text);
                }
                socket.close(None).unwrap();
                while socket.read().is_ok() {}
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert_eq!(server.join().unwrap(), CLIENTS * MESSAGES);
}
