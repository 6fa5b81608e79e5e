package org.tampu.internal.gateway;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/** A connection to a hub: bytes in both directions, by one reading and one writing thread at a time. */
public interface Link extends Closeable {
    /** Reads some bytes; -1 at the end. */
    int read(ByteBuffer into) throws IOException;

    /** Writes all of these bytes. */
    void write(byte[] bytes) throws IOException;

    /** Connects through a socket of this host. */
    static Link unix(Path socket) throws IOException {
        SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket));
        return new Link() {
            @Override
            public int read(ByteBuffer into) throws IOException {
                return channel.read(into);
            }

            @Override
            public void write(byte[] bytes) throws IOException {
                ByteBuffer left = ByteBuffer.wrap(bytes);
                while (left.hasRemaining()) {
                    channel.write(left);
                }
            }

            @Override
            public void close() throws IOException {
                channel.close();
            }
        };
    }

    /** Connects through TLS 1.3, and checks the hub's certificate against its name. The time holds for each step. */
    static Link tls(String host, int port, SSLContext context, int timeoutMillis) throws IOException {
        Socket plain = new Socket();
        try {
            return tls(plain, host, port, context, timeoutMillis);
        } catch (IOException | RuntimeException failed) {
            plain.close();
            throw failed;
        }
    }

    private static Link tls(Socket plain, String host, int port, SSLContext context, int timeoutMillis) throws IOException {
        plain.connect(new InetSocketAddress(host, port), timeoutMillis);
        // A host that is gone answers nothing: the handshake must end, too.
        plain.setSoTimeout(timeoutMillis);
        SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(plain, host, port, true);
        SSLParameters parameters = socket.getSSLParameters();
        parameters.setProtocols(new String[] {"TLSv1.3"});
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        socket.setSSLParameters(parameters);
        socket.setTcpNoDelay(true);
        socket.startHandshake();
        plain.setSoTimeout(0);
        InputStream in = socket.getInputStream();
        OutputStream out = socket.getOutputStream();
        return new Link() {
            @Override
            public int read(ByteBuffer into) throws IOException {
                int count = in.read(into.array(), into.arrayOffset() + into.position(), into.remaining());
                if (count > 0) {
                    into.position(into.position() + count);
                }
                return count;
            }

            @Override
            public void write(byte[] bytes) throws IOException {
                out.write(bytes);
                out.flush();
            }

            @Override
            public void close() throws IOException {
                // Not the one of TLS, whose end waits for a write that is stuck. BYE ends a session in order.
                plain.close();
            }
        };
    }
}
