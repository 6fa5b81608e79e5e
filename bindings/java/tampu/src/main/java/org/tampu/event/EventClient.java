package org.tampu.event;

import java.util.ArrayDeque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Flow;
import java.util.function.Consumer;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;

/**
 * Follows attributes.
 *
 * <pre>{@code
 * new EventClient(gateway).subscribe(List.of("sr/vacuum/*"), each -> System.out.println(each));
 * }</pre>
 */
public final class EventClient {
    private final Gateway gateway;

    /** Makes a client on a session. */
    public EventClient(Gateway gateway) {
        this.gateway = gateway;
    }

    /** Follows the changes of attributes; the current values come first. A thread of the subscription calls. */
    public Subscription subscribe(List<String> patterns, Consumer<Delivery> program) throws GatewayException {
        return subscribe(patterns, Map.of(), program, why -> { });
    }

    /**
     * Follows attributes.
     *
     * @param options members of OPEN in {@code spec/wire/gateway.md}: {@code kinds}, {@code first}, {@code filter}, ...
     * @param end called once, when the subscription has ended
     */
    public Subscription subscribe(
            List<String> patterns, Map<String, Object> options, Consumer<Delivery> program, Consumer<GatewayException> end)
            throws GatewayException {
        Map<String, Object> request = new LinkedHashMap<>();
        request.put("attributes", patterns);
        request.putAll(options);
        return new Subscription(gateway.session(), request, program, end);
    }

    /**
     * Returns a publisher of the same. Each subscriber gets a subscription of its own, and as many deliveries as it
     * requests; the hub waits for the rest.
     */
    public Flow.Publisher<Delivery> publisher(List<String> patterns, Map<String, Object> options) {
        return subscriber -> {
            Demand demand = new Demand(subscriber);
            subscriber.onSubscribe(demand);
            try {
                demand.started(subscribe(patterns, options, demand::deliver, demand::end));
            } catch (GatewayException refused) {
                demand.end(refused);
            }
        };
    }

    /** Requests of a subscriber. The subscription's thread waits for them, so credit is withheld from the hub. */
    private static final class Demand implements Flow.Subscription {
        private final Flow.Subscriber<? super Delivery> subscriber;
        private long requested;
        private boolean cancelled;
        private Subscription subscription;
        private final ArrayDeque<IllegalArgumentException> wrong = new ArrayDeque<>(1);

        Demand(Flow.Subscriber<? super Delivery> subscriber) {
            this.subscriber = subscriber;
        }

        synchronized void started(Subscription begun) {
            subscription = begun;
            if (cancelled) {
                begun.close();
            }
        }

        @Override
        public synchronized void request(long count) {
            if (count <= 0) {
                wrong.add(new IllegalArgumentException("a request for " + count + " deliveries"));
            } else {
                requested = requested + count < 0 ? Long.MAX_VALUE : requested + count;
            }
            notifyAll();
        }

        @Override
        public synchronized void cancel() {
            cancelled = true;
            if (subscription != null) {
                subscription.close();
            }
            notifyAll();
        }

        void deliver(Delivery delivery) {
            synchronized (this) {
                while (requested == 0 && !cancelled && wrong.isEmpty()) {
                    try {
                        wait();
                    } catch (InterruptedException interrupted) {
                        cancelled = true;
                    }
                }
                if (!wrong.isEmpty()) {
                    throw wrong.peek();
                }
                if (cancelled) {
                    return;
                }
                requested--;
            }
            subscriber.onNext(delivery);
        }

        void end(GatewayException why) {
            synchronized (this) {
                if (cancelled) {
                    return;
                }
                cancelled = true;
            }
            if (!wrong.isEmpty()) {
                subscriber.onError(wrong.peek());
            } else if (why.code().equals("done")) {
                subscriber.onComplete();
            } else {
                subscriber.onError(why);
            }
        }
    }
}
