package org.tampu.internal.gateway;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.tampu.gateway.GatewayException;
import org.tampu.gateway.Question;
import org.tampu.gateway.ServiceHandler;
import org.tampu.internal.json.Json;

/** A service of the bus, or the reads of an attribute, that this program answers through a session of the gateway. */
public final class AnsweredService implements AutoCloseable, Session.Handler {
    /** The feature of HELLO and WELCOME. */
    public static final String FEATURE = "serve";
    private static final int LAST = 1;
    private static final int REFUSED = 2;
    private static final int HEAD = 16;
    private static final long OPEN_SECONDS = 10;

    private final Session session;
    /** Name for people. */
    private final String label;
    private final Map<String, Object> serve;
    private final ServiceHandler handler;
    private final CompletableFuture<Void> opened = new CompletableFuture<>();
    /** Questions that are being answered. The service's monitor guards it. */
    private final Map<Long, Question> questions = new HashMap<>();
    private volatile String incarnation = "";
    private volatile boolean proved;
    private volatile int id;

    private AnsweredService(Session session, String label, Map<String, Object> serve, ServiceHandler handler) {
        this.session = session;
        this.label = label;
        this.serve = serve;
        this.handler = handler;
    }

    /** Begins to answer; {@code name} is that of the offer, or null. */
    public static AnsweredService open(Session session, String service, String name, ServiceHandler handler) throws GatewayException {
        Map<String, Object> serve = new LinkedHashMap<>();
        serve.put("service", service);
        if (name != null) {
            serve.put("name", name);
        }
        return serve(session, service, serve, handler);
    }

    /** Begins to answer with this body of SERVE. */
    public static AnsweredService serve(Session session, String label, Map<String, Object> body, ServiceHandler handler) throws GatewayException {
        if (!hasFeature(session.welcome())) {
            throw new GatewayException("version", missing(session.welcome()));
        }
        AnsweredService answered = new AnsweredService(session, label, body, handler);
        session.open(answered, own -> {
            // Before the hub answers.
            answered.id = own;
            return Frame.of(Frame.SERVE, own, answered.serve);
        });
        try {
            answered.opened.get(OPEN_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof GatewayException why ? why : new GatewayException("failed", failed.getMessage());
        } catch (TimeoutException late) {
            answered.close();
            throw new GatewayException("unanswered", label + ": the hub has not begun the service within " + OPEN_SECONDS + " s");
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            answered.close();
            throw new GatewayException("interrupted", label + ": the waiting thread was interrupted");
        }
        return answered;
    }

    private static boolean hasFeature(Map<String, Object> welcome) {
        return welcome.get("features") instanceof List<?> features && features.contains(FEATURE);
    }

    private static String missing(Map<String, Object> welcome) {
        return "the hub of release " + Json.text(welcome, "hub", "?") + " passes no questions on to programs: update the hub";
    }

    /** Returns the incarnation of the session. */
    public String incarnation() {
        return incarnation;
    }

    /** Returns whether hosts prove themselves; the hub says so for passes of bulk data. */
    public boolean proved() {
        return proved;
    }

    @Override
    public void take(Frame frame) {
        switch (frame.kind()) {
            case Frame.OPENED -> {
                Map<String, Object> answer = frame.json();
                incarnation = Json.text(answer, "incarnation", "");
                proved = Boolean.TRUE.equals(answer.get("proved"));
                opened.complete(null);
            }
            case Frame.QUESTION -> question(frame.body());
            case Frame.CANCEL -> {
                Question question = forget(frame.value());
                if (question != null) {
                    question.cancel();
                }
            }
            case Frame.ENDED -> {
                session.forget(frame.id());
                Map<String, Object> end = frame.json();
                String code = Json.text(end, "code", "done");
                ended(new GatewayException(code, label + ": " + Json.text(end, "error", code)));
            }
            default -> { }
        }
    }

    private synchronized Question forget(long number) {
        return questions.remove(number);
    }

    private void question(byte[] body) {
        ByteBuffer bytes = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN);
        if (body.length < HEAD || body.length < HEAD + Short.toUnsignedInt(bytes.getShort(12))) {
            return;
        }
        long number = bytes.getLong();
        Duration time = Duration.ofMillis(Integer.toUnsignedLong(bytes.getInt()));
        byte[] asker = new byte[Short.toUnsignedInt(bytes.getShort())];
        byte[] octets = new byte[body.length - HEAD - asker.length];
        bytes.position(HEAD).get(asker).get(octets);
        Question question = new Question(this, number, time, new String(asker, StandardCharsets.UTF_8), octets);
        synchronized (this) {
            questions.put(number, question);
        }
        // The hub bounds the number of questions at once.
        Thread thread = new Thread(() -> answer(number, question), "tampu-answer");
        thread.setDaemon(true);
        thread.start();
    }

    private void answer(long number, Question question) {
        try {
            try {
                handler.answer(question);
                answer(question, number, LAST, new byte[0]);
            } catch (GatewayException over) {
                throw over;
            } catch (Exception refused) {
                String why = refused.getMessage() == null ? refused.getClass().getSimpleName() : refused.getMessage();
                answer(question, number, LAST | REFUSED, Json.write(Map.of("error", why)).getBytes(StandardCharsets.UTF_8));
            }
        } catch (GatewayException over) {
            // The session has ended, and its questions with it.
        } finally {
            forget(number);
        }
    }

    /** Sends a part of an answer. Returns false if nobody reads it. */
    public boolean answer(Question question, long number, int flags, byte[] content) throws GatewayException {
        byte[] body = ByteBuffer.allocate(8 + content.length).order(ByteOrder.LITTLE_ENDIAN).putLong(number).put(content).array();
        // In a new session another question may have the number.
        return session.sendIf(new Frame(Frame.ANSWER, flags, id, 0, body), () -> !question.isCancelled());
    }

    private synchronized void cancelAll() {
        questions.values().forEach(Question::cancel);
        questions.clear();
    }

    @Override
    public Frame renew(int own) {
        cancelAll();
        if (hasFeature(session.welcome())) {
            return Frame.of(Frame.SERVE, own, serve);
        }
        System.err.println("tampu: " + label + " is no longer answered: " + missing(session.welcome()));
        opened.completeExceptionally(new GatewayException("version", missing(session.welcome())));
        return null;
    }

    @Override
    public void ended(GatewayException why) {
        cancelAll();
        boolean isRefused = opened.completeExceptionally(why);
        if (!isRefused && !why.code().equals("done")) {
            System.err.println("tampu: " + label + " is no longer answered: " + why.getMessage());
        }
    }

    @Override
    public void close() {
        try {
            session.send(new Frame(Frame.CLOSE, 0, id, 0, new byte[0]));
        } catch (GatewayException over) {
            // The session has ended before.
        }
        cancelAll();
    }
}
