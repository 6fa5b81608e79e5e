package org.tampu.internal.gateway;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.json.Json;

/** Questions to services, through a session of the gateway. */
public final class Answers {
    /** Bytes of a part before its content: the incarnation of the answering process. */
    public static final int FROM = 16;

    private Answers() {}

    /**
     * Answers of all processes.
     *
     * @param parts the parts, each behind the incarnation of its process
     * @param refusal the reason for which nobody answered, or null
     */
    public record OfAll(List<byte[]> parts, String refusal) {}

    /** Asks a service; returns the parts of the first process that answers, or of all, each behind its incarnation. */
    public static List<byte[]> ask(Session session, String service, byte[] question, Duration timeout, boolean all) throws GatewayException {
        return end(session, service, question, timeout, all).parts();
    }

    /** Asks all processes of a service. */
    public static OfAll askAll(Session session, String service, byte[] question, Duration timeout) throws GatewayException {
        return end(session, service, question, timeout, true);
    }

    private static OfAll end(Session session, String service, byte[] question, Duration timeout, boolean all) throws GatewayException {
        byte[] name = service.getBytes(StandardCharsets.UTF_8);
        byte[] body = ByteBuffer.allocate(8 + name.length + question.length).order(ByteOrder.LITTLE_ENDIAN)
                .putInt((int) Math.min(timeout.toMillis(), 600_000)).put((byte) (all ? 1 : 0)).put((byte) 0).putShort((short) name.length)
                .put(name).put(question).array();
        List<byte[]> parts = new ArrayList<>();
        CompletableFuture<String> done = new CompletableFuture<>();
        int asked = session.open(new Session.Handler() {
            @Override
            public void take(Frame frame) {
                if (frame.kind() == Frame.PART && frame.body().length >= FROM) {
                    parts.add(frame.body());
                } else if (frame.kind() == Frame.ENDED) {
                    session.forget(frame.id());
                    Map<String, Object> end = frame.json();
                    String code = Json.text(end, "code", "done");
                    if (code.equals("done")) {
                        done.complete(Json.text(end, "error", ""));
                    } else {
                        done.completeExceptionally(new GatewayException(code, service + ": " + Json.text(end, "error", code)));
                    }
                }
            }

            @Override
            public Frame renew(int own) {
                done.completeExceptionally(new GatewayException("failed", service + ": the hub was restarted"));
                return null;
            }

            @Override
            public void ended(GatewayException why) {
                done.completeExceptionally(why);
            }
        }, id -> new Frame(Frame.ASK, 0, id, 0, body));
        try {
            String refusal = done.get(timeout.toMillis() + 5000, TimeUnit.MILLISECONDS);
            return new OfAll(parts, refusal.isEmpty() ? null : refusal);
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof GatewayException why ? why : new GatewayException("failed", failed.getMessage());
        } catch (TimeoutException late) {
            session.send(new Frame(Frame.CLOSE, 0, asked, 0, new byte[0]));
            throw new GatewayException("unanswered", service + ": no answer within " + timeout);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new GatewayException("interrupted", service + ": the waiting thread was interrupted");
        }
    }
}
