# SPDX-License-Identifier: Apache-2.0
import logging

ad_logger = logging.getLogger("auto_deploy")
