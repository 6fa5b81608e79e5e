package org.tampu.bulk;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;
import org.tampu.gateway.Question;
import org.tampu.gateway.Service;

/**
 * An offer of a sender or a receiver under a name: other programs start, pace, pause and stop the sender, and open and
 * close the receiver, with {@code tampu bulk control} or {@link BulkControl}. Without an offer nobody controls it. The rules of
 * the host decide about each command; the hub checks them.
 *
 * <pre>{@code
 * try (var sender = BulkSender.builder("alma", "correlator", "spectra").open();
 *         var offer = BulkOffer.sender(gateway, "corr", List.of(sender), order -> {
 *             order.sender().start(order.parameter());
 *             ...
 *             order.sender().stop().check();
 *         })) { ... }
 * }</pre>
 *
 * <p>The offer ends when it is closed, before the sender. Then work of a start is stopped, and an open receiver is closed.
 */
public final class BulkOffer implements AutoCloseable {
    private static final String SERVICE = "bulk/control";

    /** Carries a start out. */
    @FunctionalInterface
    public interface StartHandler {
        /**
         * Begins and ends transfers on the flow of the order, on a thread of its own, one order at a time. After a stop its calls fail with
         * {@link BulkException.Kind#CANCELLED}; it may then end the transfer in order, and begins no other one. A transfer that
         * is open when it returns is given up. The message of its exception stands in the state.
         */
        void start(BulkOrder order) throws Exception;
    }

    /** Opens a receiver. */
    @FunctionalInterface
    public interface OpenHandler {
        /** Opens the receiver of these flows. The offer announces it, and closes it. */
        BulkReceiver open(List<String> flows) throws IOException;
    }

    /** Work that the program does on a flow by itself, until it is closed. */
    public interface OwnWork extends AutoCloseable {
        @Override
        void close();
    }

    private final Gateway gateway;
    private final String name;
    private final Controlled controlled;
    private final Service service;

    private BulkOffer(Gateway gateway, String name, Controlled controlled) throws GatewayException {
        this.gateway = gateway;
        this.name = name;
        this.controlled = controlled;
        this.service = gateway.serve(SERVICE, name, this::answer);
    }

    /**
     * Offers the flows of one stream.
     *
     * @param name the name of the offer: 1 to 200 bytes without control characters and '#'
     * @param onStart carries starts out; null if the program begins all transfers itself, which others may pace, pause and stop
     */
    public static BulkOffer sender(Gateway gateway, String name, List<BulkSender> flows, StartHandler onStart) throws GatewayException {
        return new BulkOffer(gateway, name, new ControlledSender(flows, onStart));
    }

    /** Offers a receiver of a stream, which is closed at first. */
    public static BulkOffer receiver(Gateway gateway, String name, String stream, List<String> flows, OpenHandler onOpen) throws GatewayException {
        if (flows.isEmpty()) {
            throw new IllegalArgumentException("an offer needs at least one flow");
        }
        return new BulkOffer(gateway, name, new ControlledReceiver(gateway, stream, flows, onOpen));
    }

    /**
     * Notes that the program works on a flow by itself until the returned value is closed. A stop then also ends what is
     * between two transfers, or before the first one: further starts fail with {@link BulkException.Kind#CANCELLED}. Without it a
     * stop ends a running transfer only.
     */
    public OwnWork beginWork(BulkSender flow) {
        if (controlled instanceof ControlledSender sender) {
            return sender.beginWork(flow);
        }
        throw new IllegalStateException("the offer is of a receiver");
    }

    /** Returns the state, with the members of {@code spec/bulk-control.md}. */
    public Map<String, Object> state() {
        return state(service.incarnation(), true);
    }

    private Map<String, Object> state(String process, boolean withReport) {
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("name", name);
        state.put("process", process);
        state.put("source", gateway.session().source());
        state.putAll(controlled.state(withReport));
        return state;
    }

    private void answer(Question question) throws Exception {
        ControlCommand command = ControlCommand.parse(question.text());
        if (command.name() == null) {
            if (!command.verb().equals("state")) {
                throw new BulkRefusal("a command needs the `name` of an offer");
            }
            question.json(state(question.process(), false));
            return;
        }
        try {
            controlled.obey(command);
        } catch (BulkRefusal refused) {
            throw new BulkRefusal("'" + name + "': " + refused.getMessage());
        }
        question.json(state(question.process(), true));
    }

    /** Ends the offer. Work of a start is stopped, and an open receiver is closed. */
    @Override
    public void close() {
        service.close();
        controlled.end();
    }
}
