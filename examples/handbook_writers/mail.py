"""EML: a mail with a PDF attached."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from .pdf import write_pdf
from .source import Manuscript


def write_eml(mail: Mapping[str, Any]) -> bytes:
    """A mail.

    Args:
        mail: from, to, cc, date, message_id, subject and body, and attachment_name, attachment_title and the
            attachment's text in Markdown.
    """
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Cc"] = mail["from"], mail["to"], mail["cc"]
    message["Date"] = datetime.fromisoformat(mail["date"])
    message["Message-ID"] = mail["message_id"]
    message["Subject"] = mail["subject"]
    message.set_content(mail["body"].lstrip("\n"), cte="quoted-printable")
    attached = write_pdf(Manuscript({"title": mail["attachment_title"]}, mail["attachment"].lstrip("\n")))
    message.add_attachment(attached, "application", "pdf", filename=mail["attachment_name"])
    message.set_boundary("=-hollin-and-reed-boundary-=")
    return message.as_bytes()
