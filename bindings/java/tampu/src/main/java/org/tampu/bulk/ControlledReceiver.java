package org.tampu.bulk;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;

/** A receiver that opens and closes by command, and is announced while it is open. */
final class ControlledReceiver implements Controlled {
    private final Gateway gateway;
    private final String stream;
    private final List<String> flows;
    private final BulkOffer.OpenHandler onOpen;
    /** Held while it opens or closes, so that two commands do not open it twice. */
    private final Object turns = new Object();
    /** The open receiver, or null. The monitor guards it and the following fields. */
    private BulkReceiver open;
    private long starts;
    private String failure;
    private boolean ended;

    ControlledReceiver(Gateway gateway, String stream, List<String> flows, BulkOffer.OpenHandler onOpen) {
        this.gateway = gateway;
        this.stream = stream;
        this.flows = List.copyOf(flows);
        this.onOpen = onOpen;
    }

    @Override
    public void obey(ControlCommand command) throws BulkRefusal {
        switch (command.verb()) {
            case "state" -> { }
            case "open" -> open(command);
            case "close" -> {
                if (!close()) {
                    throw new BulkRefusal("it is closed already; open it first");
                }
            }
            default -> throw new BulkRefusal("it is a receiver, which obeys open and close");
        }
    }

    private void open(ControlCommand command) throws BulkRefusal {
        synchronized (turns) {
            synchronized (this) {
                if (ended) {
                    throw new BulkRefusal("its program is ending");
                }
                if (open != null) {
                    throw new BulkRefusal("it is open already; close it first");
                }
            }
            BulkReceiver opened = null;
            String why = null;
            try {
                opened = opened(command);
            } catch (BulkRefusal refused) {
                why = refused.getMessage();
            }
            synchronized (this) {
                open = opened;
                failure = why;
                starts += opened == null ? 0 : 1;
            }
            if (why != null) {
                throw new BulkRefusal(why);
            }
        }
    }

    private BulkReceiver opened(ControlCommand command) throws BulkRefusal {
        List<String> wanted = command.texts("flows");
        for (String flow : wanted) {
            if (flows.stream().noneMatch(flow::equalsIgnoreCase)) {
                throw Controlled.noFlow(flow, flows);
            }
        }
        List<String> chosen = flows.stream().filter(flow -> wanted.isEmpty() || wanted.stream().anyMatch(flow::equalsIgnoreCase)).toList();
        String protocol = command.text("protocol");
        if (protocol != null && !protocol.equals("auto") && !protocol.equals("tcp")) {
            throw new BulkRefusal("flow '" + chosen.get(0) + "' accepts tcp only, and not " + protocol);
        }
        BulkReceiver receiver;
        try {
            receiver = onOpen.open(chosen);
        } catch (IOException | RuntimeException failed) {
            throw new BulkRefusal(failed.getMessage() == null ? failed.getClass().getSimpleName() : failed.getMessage());
        }
        try {
            narrow(receiver, command, chosen.get(0));
            receiver.announce(gateway);
            return receiver;
        } catch (BulkRefusal | GatewayException failed) {
            closeQuietly(receiver);
            throw new BulkRefusal(failed.getMessage());
        }
    }

    /** Makes the settings stricter, never less strict. */
    private static void narrow(BulkReceiver receiver, ControlCommand command, String flow) throws BulkRefusal {
        if (Boolean.TRUE.equals(command.members().get("checksum"))) {
            receiver.checksum(true);
        }
        String word = command.text("protection");
        if (word == null) {
            return;
        }
        Protection wanted;
        try {
            wanted = Protection.valueOf(word.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException unknown) {
            throw new BulkRefusal("'" + word + "' is no protection; use auto, none, authenticated or encrypted");
        }
        Protection own = receiver.protection();
        if (wanted.level(true) < own.level(true) || wanted.level(false) < own.level(false)) {
            throw new BulkRefusal("flow '" + flow + "' demands the protection '" + own.name().toLowerCase(Locale.ROOT) + "', and '" + word + "' is less");
        }
        receiver.protection(wanted);
    }

    private boolean close() {
        synchronized (turns) {
            BulkReceiver closed;
            synchronized (this) {
                closed = open;
                open = null;
            }
            closeQuietly(closed);
            return closed != null;
        }
    }

    private static void closeQuietly(BulkReceiver receiver) {
        if (receiver != null) {
            try {
                receiver.close();
            } catch (IOException gone) {
                // Its socket is gone, which is what was wanted.
            }
        }
    }

    @Override
    public Map<String, Object> state(boolean withReport) {
        BulkReceiver receiver;
        Map<String, Object> state = new LinkedHashMap<>();
        synchronized (this) {
            receiver = open;
            state.put("kind", "receiver");
            state.put("stream", stream);
            state.put("active", open != null);
            state.put("starts", starts);
            state.put("failure", failure);
        }
        if (withReport && receiver != null) {
            state.put("report", Map.of("receiver", receiver.state()));
        }
        return state;
    }

    @Override
    public void end() {
        synchronized (turns) {
            synchronized (this) {
                ended = true;
            }
        }
        close();
    }
}
