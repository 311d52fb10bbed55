-- Orders that are late, for the meeting on Monday morning.

CREATE TABLE IF NOT EXISTS orders (
    order_no     VARCHAR PRIMARY KEY,
    customer     VARCHAR NOT NULL,
    promised_on  DATE NOT NULL,
    delivered_on DATE,
    amount_eur   DECIMAL(10, 2) NOT NULL
);

-- From the eleventh day on, the customer gets five percent off without having to ask.
CREATE OR REPLACE VIEW late_orders AS
SELECT order_no,
       customer,
       current_date - promised_on AS days_late,
       CASE WHEN current_date - promised_on > 10 THEN round(amount_eur * 0.05, 2) ELSE 0 END AS compensation_eur
FROM orders
WHERE delivered_on IS NULL
  AND promised_on < current_date
ORDER BY days_late DESC;
