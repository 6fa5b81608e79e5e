package org.tampu.event;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.AnsweredService;
import org.tampu.internal.gateway.Frame;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.json.Json;

/** An attribute that this program publishes. Its readings may be pushed by any thread. */
public final class Attribute implements AutoCloseable {
    private static final long PATIENCE = 10;
    private static final List<String> FORMATS = List.of("scalar", "spectrum", "image");

    private final Session session;
    private final String name;
    private final DataType type;
    private final int format;
    private final CompletableFuture<Void> opened = new CompletableFuture<>();
    private final AtomicLong written = new AtomicLong();
    private final AtomicLong refused = new AtomicLong();
    private final int id;
    private volatile String lastRefusal = "";
    private final List<AnsweredService> callbacks = new CopyOnWriteArrayList<>();
    private volatile GatewayException ended;

    Attribute(Session session, String name, DataType type, String format, Map<String, Object> body) throws GatewayException {
        this.session = session;
        this.name = name;
        this.type = type;
        this.format = FORMATS.indexOf(format);
        this.id = session.open(new Session.Handler() {
            @Override
            public void take(Frame frame) {
                switch (frame.kind()) {
                    case Frame.OPENED -> opened.complete(null);
                    case Frame.RECEIPT -> receipt(frame.json());
                    case Frame.ENDED -> {
                        session.forget(frame.id());
                        Map<String, Object> end = frame.json();
                        String code = Json.text(end, "code", "done");
                        ended(new GatewayException(code, name + ": " + Json.text(end, "error", code)));
                    }
                    default -> { }
                }
            }

            @Override
            public Frame renew(int own) {
                return Frame.of(Frame.DECLARE, own, body);
            }

            /** A reading may come twice by that, in two lives of the source. Otherwise it would be lost untold. */
            @Override
            public boolean isSentAgain(Frame frame) {
                return frame.kind() == Frame.PUBLISH || frame.kind() == Frame.CLOSE;
            }

            @Override
            public void ended(GatewayException why) {
                ended = why;
                opened.completeExceptionally(why);
            }
        }, each -> Frame.of(Frame.DECLARE, each, body));
        try {
            opened.get(PATIENCE, TimeUnit.SECONDS);
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof GatewayException why ? why : new GatewayException("failed", failed.getMessage());
        } catch (TimeoutException late) {
            throw new GatewayException("unanswered", name + ": the hub did not answer the declaration");
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new GatewayException("interrupted", name + ": the waiting thread was interrupted");
        }
    }

    private void receipt(Map<String, Object> body) {
        written.set(Json.number(body, "written", written.get()));
        if (body.get("refused") instanceof List<?> all && !all.isEmpty()) {
            refused.addAndGet(all.size());
            if (all.get(all.size() - 1) instanceof List<?> last && last.size() == 2) {
                lastRefusal = String.valueOf(last.get(1));
            }
        }
    }

    /** Pushes a valid reading of this moment. */
    public void push(Value value) throws GatewayException {
        push(List.of(Event.reading(value, Quality.VALID, 0)));
    }

    /** Pushes a reading. */
    public void push(Value value, Quality quality) throws GatewayException {
        push(List.of(Event.reading(value, quality, 0)));
    }

    /**
     * Pushes readings, oldest first. They travel together, which is faster than one by one. Waits while the hub is
     * behind.
     *
     * @throws IllegalArgumentException for a value of another type or format, before anything is sent
     */
    public void push(List<Event> readings) throws GatewayException {
        if (ended != null) {
            throw ended;
        }
        ByteArrayOutputStream body = new ByteArrayOutputStream(readings.size() * 80);
        for (Event reading : readings) {
            check(reading.value());
            byte[] sample = EventCodec.encode(reading);
            body.writeBytes(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(sample.length).array());
            body.writeBytes(sample);
            body.writeBytes(new byte[-sample.length & 3]);
        }
        session.send(new Frame(Frame.PUBLISH, 0, id, 0, body.toByteArray()));
    }

    /**
     * Has {@code read} called when somebody asks for the current value and the last reading is older than
     * {@code maxAge}; its value is pushed. It runs on a thread of its own, one call at a time. Those who ask wait at most
     * 2 s, and share the reading. They get the message of an exception; the attribute's reading stays as it is.
     *
     * @param read returns the value, or null if it has pushed a reading itself
     */
    public void onRead(Duration maxAge, Callable<Value> read) throws GatewayException {
        callback("fresh_ms", maxAge, read);
    }

    /**
     * Has {@code read} called at this period, and pushes its value. The period can be changed from outside while the
     * program runs ({@code tampu event conf}). It runs on a thread of its own, one call at a time; a slow one is called
     * less often. An exception becomes a failed reading.
     *
     * @param read returns the value, or null if it has pushed a reading itself
     */
    public void poll(Duration period, Callable<Value> read) throws GatewayException {
        callback("poll_ms", period, read);
    }

    private void callback(String member, Duration time, Callable<Value> read) throws GatewayException {
        Map<String, Object> serve = Map.of("read", id, member, time.toMillis());
        callbacks.add(AnsweredService.serve(session, name, serve, question -> {
            Value value = read.call();
            if (value != null) {
                push(value);
            }
        }));
    }

    private void check(Value value) {
        if (value != null && value.type() != type) {
            throw new IllegalArgumentException(name + " is of type " + type.label() + ", not " + value.type().label());
        }
        if (value != null && value.format() != format) {
            throw new IllegalArgumentException(name + " is a " + FORMATS.get(format) + ", not a " + FORMATS.get(value.format()));
        }
    }

    /** Returns the number of readings that the hub has taken. */
    public long written() {
        return written.get();
    }

    /** Returns the number of readings that the hub has refused. */
    public long refused() {
        return refused.get();
    }

    /** Returns the reason of the last refusal, or an empty text. */
    public String lastRefusal() {
        return lastRefusal;
    }

    /** Withdraws the attribute, after the readings that were pushed. */
    @Override
    public void close() throws GatewayException {
        callbacks.forEach(AnsweredService::close);
        if (ended == null) {
            session.send(new Frame(Frame.CLOSE, 0, id, 0, new byte[0]));
        }
    }
}
